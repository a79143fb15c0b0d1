"""What /proc says about the processes of a program that `orcalike run` started."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from orcalike.bench.harness import BenchError, Program
from orcalike.cli.runs import look

WITNESS = -1
"""Stands for the witness when ranks are counted."""


def ranks(program: Program) -> dict[int, int]:
    """The process of each rank, and that of `WITNESS`.

    Raises BenchError if the launcher does not say.
    """
    own = {int(thread.parent.parent.name) for thread in program.threads()}
    for answer in look(None, {"do": "status"}).runs:
        running = [each for each in answer["processes"] if each["state"] == "running"]
        found = {number_of(each["role"]): int(each["pid"]) for each in running}
        if found and own.issuperset(found.values()):
            return found
    raise BenchError(f"{program.name} does not say which its processes are")


def number_of(role: str | int) -> int:
    """The rank of a process, or `WITNESS`."""
    return WITNESS if role == "witness" else int(role)


def pin(pid: int, cores: set[int]) -> None:
    """Let all threads of a process run on these cores only."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)


def core_seconds(pid: int) -> float:
    """The time that all threads of a process have had a core for, so far."""
    spent = (
        int((thread / "schedstat").read_text().split()[0])
        for thread in Path(f"/proc/{pid}/task").iterdir()
    )
    return sum(spent) / 1e9


def memory(pid: int) -> float:
    """MB of a process, its share of what it has in common with others (Pss)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise BenchError("the kernel does not say how much memory a process has")


def wakeups(pid: int) -> dict[int, int]:
    """How often each thread of a process has gone to sleep by itself, so far."""
    return {
        int(thread.name): int(line.split()[1])
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for line in (thread / "status").read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches:")
    }
