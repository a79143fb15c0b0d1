"""The `orcalike run` command as users type it, with programs that a test writes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.lib.processes import DEADLINE, until

#: Every program begins with it.
HEAD = "import os, sys, time\nrank = int(os.environ.get('RANK', -1))\n"


class Cli:
    """The `orcalike run` command, and programs for it in the test's own directory."""

    command: tuple[str, ...] = (sys.executable, "-m", "orcalike", "run")
    deadline = DEADLINE

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, source: str, name: str = "prog.py") -> str:
        """Write a program; returns its path. It finds os, sys, time and `rank`."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + textwrap.dedent(source))
        return str(path)

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[Any]:
        """Run to the end, with both outputs."""
        settings = {"capture_output": True, "text": True, "timeout": DEADLINE} | options
        return subprocess.run([*self.command, *arguments], check=False, **settings)

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A run under way, with pipes; killed at the end if it still goes on."""
        pipe = subprocess.PIPE
        command = [*self.command, *arguments]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def pids(self, count: int) -> list[int]:
        """The numbers that the ranks have written, a line each, into files `pid*`."""
        found: list[int] = []

        def complete() -> bool:
            texts = [path.read_text() for path in self.directory.glob("pid*")]
            found[:] = [int(pid) for text in texts if text.endswith("\n") for pid in text.split()]
            return len(found) == count

        until(complete, f"{count} pids")
        return found
