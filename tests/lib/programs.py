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

from tests.lib import warm
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

    def __init__(self, process: warm.Fork | subprocess.Popen[str], errors: Path) -> None:
        self.process = process  # type: ignore[assignment]  # a fork has what is used of it
        self.errors = errors

    def complaints(self) -> str:
        """Its stderr without what is no error."""
        return complaints(self.stderr())


class Programs:
    """Starts the programs, which meet in the test's own directory.

    They are forks of a process that has loaded orcalike, unless they are to have variables that Python reads as it starts.
    """

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
        arguments = tuple(map(self.path, arguments))
        variables = self.environment | environment
        if not _are_read_by_python(environment):
            return warm.python(*arguments, env=variables)
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": DEADLINE}
        return subprocess.run([sys.executable, *arguments], check=False, env=variables, **options)

    def facts(self, *arguments: str, **environment: str) -> list[Facts]:
        """What the ranks of a run that must end well print, by rank."""
        result = self.run(*arguments, **environment)
        assert result.returncode == 0, result.stderr
        facts = [json.loads(line) for line in result.stdout.splitlines()]
        return sorted(facts, key=lambda fact: int(fact["rank"]))

    def start(self, *arguments: str, **environment: str) -> Program:
        """Python with these arguments, under way; ended with the test."""
        arguments = tuple(map(self.path, arguments))
        if _are_read_by_python(environment):
            return self._start([sys.executable, *arguments], environment)
        errors, variables = self._errors(), self.environment | environment
        fork = warm.Fork(*arguments, env=variables, has_input=False, errors=errors)
        return self._started(Program(fork, errors))

    def start_on(self, host: Host, *arguments: str, **environment: str) -> Program:
        """The same on another host."""
        command = host.command(sys.executable, *map(self.path, arguments))
        return self._start(command, environment)

    def start_in(self, container: list[str], *arguments: str, **environment: str) -> Program:
        """The same by a command that runs it elsewhere, as in namespaces of its own."""
        command = [*container, sys.executable, *map(self.path, arguments)]
        return self._start(command, environment)

    def _start(self, command: list[str], environment: dict[str, str]) -> Program:
        errors = self._errors()
        pipe, variables = subprocess.PIPE, self.environment | environment
        with errors.open("w") as file:
            process = subprocess.Popen(command, stdout=pipe, stderr=file, text=True, env=variables)
        return self._started(Program(process, errors))

    def _errors(self) -> Path:
        return self.directory / f"stderr{len(self.started)}"

    def _started(self, program: Program) -> Program:
        self.started.append(program)
        return program

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


def _are_read_by_python(environment: dict[str, str]) -> bool:
    """Whether an interpreter would have these variables from its start."""
    return any(name.startswith("PYTHON") for name in environment)
