"""Processes that a test or a campaign starts, watches, pauses and ends.

`orcalike.testing.Processes` calls functions in members of a group. Here whole programs run: what they
print, how they end, and what becomes of the others is what is tested.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEADLINE = 250.0
"""Seconds that anything may take; no test passes or fails by less."""

Facts = dict[str, Any]
"""A line of JSON that a program has printed."""


class Stuck(AssertionError):
    """What must happen did not."""


def is_readable(descriptor: int, seconds: float) -> bool:
    """Whether a descriptor has something to read within that time. It may have any number: select(2) takes those below 1024."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def until(
    holds: Callable[[], object],
    what: str = "what is waited for here",
    timeout: float = DEADLINE,
    pause: float = 0.005,
) -> None:
    """Wait until something holds; raises Stuck if it does not in `timeout` seconds."""
    end = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > end:
            raise Stuck(f"never: {what}")
        time.sleep(pause)


def state_of(pid: int) -> str:
    """`R` for running, `S` for sleeping, `T` for stopped, `Z` for ended, as the kernel has it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "Z"
    return stat.rpartition(")")[2].split()[0]


def stop(pid: int) -> None:
    """Have a process stand still, as SIGSTOP does: with all its threads, which the kernel stops one by one."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    until(
        lambda: {state_of(int(each.name)) for each in threads.iterdir()} == {"T"}, "it stands still"
    )


def parent_of(pid: int) -> int:
    """Which process has started it."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether the process runs: one that has ended, and was not waited for, does not."""
    return state_of(pid) != "Z"


def output_of(*command: str) -> str:
    """The stdout of a command, which must end well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Process:
    """A program under way: its stdout is lines of JSON, its stderr a file."""

    def __init__(self, command: list[str], errors: Path | None, **options: Any) -> None:
        """Start it; without `errors` its stderr is that of the test. `options` are those of Popen."""
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(errors.open("w")) if errors else None
            self.process: subprocess.Popen[str] = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, text=True, **options
            )
        self.errors = errors

    @property
    def pid(self) -> int:
        """The process's number."""
        return self.process.pid

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self.process.poll() is None

    def next_fact(self) -> Facts:
        """The next line of its stdout; raises AssertionError if there is none."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"it printed no more, but:\n{self.stderr()}"
        facts: Facts = json.loads(line)
        return facts

    def stderr(self) -> str:
        """What it wrote to stderr so far."""
        return self.errors.read_text() if self.errors else ""

    def write(self, line: str = "") -> None:
        """One line to its stdin; a process that is gone gets nothing."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is still there."""
        if self.runs:
            self.process.send_signal(number)

    def pause(self) -> None:
        """Have it stand still, as SIGSTOP does."""
        if self.runs:
            stop(self.pid)

    def resume(self) -> None:
        """Have it go on."""
        self.signal(signal.SIGCONT)

    def end(self) -> int:
        """Wait for its end; returns the exit code."""
        return self.process.wait(DEADLINE)

    def kill(self) -> None:
        """End it with SIGKILL, and close its pipes."""
        self.process.kill()
        self.process.wait(DEADLINE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def resident(self) -> int:
        """How much memory it has, in bytes."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
