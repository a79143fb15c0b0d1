"""The programs of tests/cluster/programs: started, alone or by `orcalike run`, and ended."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.lib.network import Host
from tests.lib.processes import DEADLINE, Facts, Process

OVER_SOCKETS = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
"""The stack of groups over Unix sockets whose order a sequencer gives; without one it is in shared memory."""

PROGRAMS = Path(__file__).parents[1] / "cluster" / "programs"

#: Warnings that a busy machine may bring about, as they are printed, with logging set up or not.
EXPECTED = re.compile(
    r"(orcalike: )?("
    r"[\w.]+ of '[^']*' ran for \d+\.\d ms where messages are received; 5 ms is the bound(: .+)?|"
    r"the group '\w+' has too few members: degree \d+ takes \d+ members with replicas, and the view "
    r"has \d+; such writes wait for .+, or for group\.reset\(\)|"
    r"the group '\w+' has members enough again for every degree|"
    r"[\w.]+ of '[^']*' has run for \d+\.\d s(?: where messages are received)?, and has not ended: .+|"
    r".+ waits: .+"
    r")"
)


def complaints(errors: str) -> str:
    """A stderr without what is no error: operations that took long, members too few for a degree."""
    found, shows_stack = list[str](), False
    for line in errors.splitlines():
        if shows_stack and line.startswith(" "):
            continue
        shows_stack = line.endswith("; it is in")
        if not EXPECTED.fullmatch(line):
            found.append(line)
    return "\n".join(found)


class Program(Process):
    """A program under way, which logs to stderr."""

    def complaints(self) -> str:
        """Its stderr without what is no error."""
        return complaints(self.stderr())


class Programs:
    """Starts the programs, which meet in the test's own directory."""

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
        self.started: list[Program] = []

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`orcalike run` with these arguments, of which one is a program's name."""
        return self.python("-m", "orcalike", "run", "--no-prefix", "-q", *arguments, **environment)

    def python(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments, to the end."""
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": DEADLINE}
        command = [sys.executable, *map(self.path, arguments)]
        return subprocess.run(command, check=False, env=self.environment | environment, **options)

    def facts(self, *arguments: str, **environment: str) -> list[Facts]:
        """What the ranks of a run that must end well print, by rank."""
        result = self.run(*arguments, **environment)
        assert result.returncode == 0, result.stderr
        facts = [json.loads(line) for line in result.stdout.splitlines()]
        return sorted(facts, key=lambda fact: int(fact["rank"]))

    def start(self, *arguments: str, **environment: str) -> Program:
        """Python with these arguments, under way; ended with the test."""
        return self._start([sys.executable, *map(self.path, arguments)], environment)

    def start_on(self, host: Host, *arguments: str, **environment: str) -> Program:
        """The same on another host."""
        command = host.command(sys.executable, *map(self.path, arguments))
        return self._start(command, environment)

    def start_in(self, container: list[str], *arguments: str, **environment: str) -> Program:
        """The same by a command that runs it elsewhere, as in namespaces of its own."""
        command = [*container, sys.executable, *map(self.path, arguments)]
        return self._start(command, environment)

    def _start(self, command: list[str], environment: dict[str, str]) -> Program:
        errors = self.directory / f"stderr{len(self.started)}"
        self.started.append(Program(command, errors, env=self.environment | environment))
        return self.started[-1]

    def path(self, argument: str) -> str:
        """The path of a program; other arguments stay as they are."""
        return str(PROGRAMS / argument) if argument.endswith(".py") else argument

    def call(self, name: str) -> None:
        """Give the programs a sign that they wait for."""
        (self.directory / name).touch()

    def kill_all(self) -> None:
        """End what still runs."""
        for each in self.started:
            each.kill()
