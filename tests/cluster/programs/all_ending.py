"""A rank of a run with `--restart`: twice all ranks end at once, by `kill -9`, while they write.

Each keeps in a file what was acknowledged to it. Objects of all kinds outlive it: one that is large, one with calls
that wait for their guards, one that was dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

from common import MEETINGS, call, called, meet, wait_for
from objects import Box, Log

import orcalike as orca

EACH = 300
RANKS = 3
SIZE = int(os.environ.get("SIZE", "0"))


@orca.shared
class Gate:
    """Opens when a rank says so."""

    def __init__(self) -> None:
        self.open = False
        self.passed = 0
        self.left: list[int] = []

    @orca.write
    def go(self) -> None:
        """Let all pass."""
        self.open = True

    @orca.write
    def through(self) -> int:
        """Wait until it is open."""
        self.passed += 1
        return self.passed

    @through.when
    def _(self) -> bool:
        return self.open

    def member_left(self, member: orca.Member) -> None:
        """A rank has gone."""
        if member.rank is not None:
            self.left.append(member.rank)

    @orca.read
    def seen(self) -> tuple[int, list[int]]:
        """How many have passed, and which ranks have gone."""
        return self.passed, self.left


def end_all() -> None:
    """Kill all ranks, this one last."""
    pids = [int(path.suffix[1:]) for path in MEETINGS.glob(f"life{again}.*")]
    assert len(pids) == RANKS
    for pid in sorted(pids, key=lambda each: each == os.getpid()):
        os.kill(pid, signal.SIGKILL)


def write(file: Path, text: str) -> None:
    """Write a file of which no process sees a part."""
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(file)


again = int(os.environ.get("ORCALIKE_RESTART_COUNT", "0"))
with orca.join(resilience=int(os.environ.get("DEGREE", "0"))) as group:
    rank = group.rank
    assert rank is not None
    log, gate = group.share(Log, "log"), group.share(Gate, "gate")
    if SIZE and rank == 0 and not again:
        for number in range(SIZE):
            group.share(Box, f"box {number}", b"x" * (1 << 20))
        group.drop(group.share(Box, "gone", b"y"))
    file = MEETINGS / f"acknowledged{rank}"
    last = int(file.read_text()) if file.exists() else -1
    assert log.last(rank) >= last, f"{last} was acknowledged, and the newest is {log.last(rank)}"
    meet(f"life{again}", RANKS)
    with contextlib.suppress(orca.InvocationTimeout):
        gate.through.options(timeout=0.01)()  # it is withdrawn, and never runs
    begin = log.last(rank) + 1
    for number in range(begin, begin + EACH):
        log.add(rank, number)
        write(file, str(number))
        if again < 2 and rank == again and number == begin + EACH // 2:
            end_all()
    meet(f"written{again}", RANKS)  # in this life: one that was killed may have written all before
    if rank == 0:
        gate.go()
        group.fence()
        acknowledged = {
            each: int((MEETINGS / f"acknowledged{each}").read_text()) for each in range(RANKS)
        }
        found = {each: log.numbers(each) for each in range(RANKS)}
        passed, left = gate.seen()
        facts = {
            "whole": all(found[each] == [*range(acknowledged[each] + 1)] for each in range(RANKS)),
            "disorder": log.disorder(),
            "passed": passed,
            "left": sorted(left),
            "sizes": [group.find(Box, f"box {number}").get() for number in range(SIZE)],
        }
        print(json.dumps(facts))
        call("compared")
    wait_for(lambda: called("compared"), "the first has compared")
