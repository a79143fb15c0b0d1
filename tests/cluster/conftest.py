"""What the tests with real processes share: programs that are started, watched and ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: How long anything may take; no test passes or fails by less.
DEADLINE = 250.0
PROGRAMS = Path(__file__).parent / "programs"

Facts = dict[str, Any]

#: Warnings that are no errors, as they are printed, with logging set up or not.
EXPECTED = re.compile(
    r"(orcalike: )?("
    r"[\w.]+ of '\w+' ran for \d+\.\d ms where messages are received; 5 ms is the bound(: .+)?|"
    r"the group '\w+' has too few members: degree \d+ takes \d+ members with replicas, and the view "
    r"has \d+; such writes wait for .+, or for group\.reset\(\)|"
    r"the group '\w+' has members enough again for every degree"
    r")"
)


class Process:
    """A program under way, and what it says."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self.process = process
        self.errors = errors

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> Facts:
        """The next fact that it tells."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"it said no more, but:\n{self.said()}"
        facts: Facts = json.loads(line)
        return facts

    def said(self) -> str:
        """What it wrote to stderr so far."""
        return self.errors.read_text()

    def complaints(self) -> str:
        """The same without what is no error: operations that took long, members too few for a degree."""
        return "\n".join(line for line in self.said().splitlines() if not EXPECTED.fullmatch(line))

    def end(self) -> int:
        """Wait for its end; returns the exit code."""
        return self.process.wait(DEADLINE)

    def state(self) -> str:
        """`R` for running, `S` for sleeping, `T` for stopped, as the kernel has it."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def resident(self) -> int:
        """How much memory it has, in bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Programs:
    """Starts the programs in `programs/`, which meet in the test's own directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = os.environ | {
            "MEETINGS": str(directory),
            "ORCALIKE_CHECK": "order",
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
        }
        key = directory / "key"  # for those that listen on TCP
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(32))
        self.started: list[Process] = []

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`orcalike run` with these arguments, of which one is a program's name."""
        command = [sys.executable, "-m", "orcalike", "run", "--no-prefix", "-q"]
        return self.python(*command[1:], *arguments, **environment)

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments, to the end."""
        return subprocess.run(
            [sys.executable, *map(self.path, arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=self.environment | environment,
        )

    def facts(self, *arguments: str, **environment: str) -> list[Facts]:
        """What the ranks of a run that must end well tell, by rank."""
        result = self.run(*arguments, **environment)
        assert result.returncode == 0, result.stderr
        facts = [json.loads(line) for line in result.stdout.splitlines()]
        return sorted(facts, key=lambda fact: int(fact["rank"]))

    def start(self, *arguments: str, **environment: str) -> Process:
        """Python with these arguments, under way; ended with the test."""
        errors = self.directory / f"stderr{len(self.started)}"
        with errors.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, *map(self.path, arguments)],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=self.environment | environment,
            )
        self.started.append(Process(process, errors))
        return self.started[-1]

    def path(self, argument: str) -> str:
        """The path of a program; other arguments stay as they are."""
        return str(PROGRAMS / argument) if argument.endswith(".py") else argument

    def call(self, name: str) -> None:
        """Say something to the programs."""
        (self.directory / name).touch()

    def stop(self, process: Process) -> None:
        """Have a process stand still."""
        process.process.send_signal(signal.SIGSTOP)
        self.until(lambda: process.state() == "T", "it stands still")

    def go_on(self, process: Process) -> None:
        """Have a process that stands still go on."""
        process.process.send_signal(signal.SIGCONT)

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds."""
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end, f"never: {what}"
            time.sleep(0.005)

    def kill_all(self) -> None:
        """End what still runs."""
        for each in self.started:
            with contextlib.suppress(ProcessLookupError):
                each.process.send_signal(signal.SIGKILL)
            each.process.wait(DEADLINE)
            if each.process.stdout:
                each.process.stdout.close()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """The programs, for this test."""
    programs = Programs(tmp_path)
    yield programs
    programs.kill_all()
