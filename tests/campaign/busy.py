"""G33: members come and go on a machine that is too busy for them, and none is taken for dead.

    python -m tests.campaign.busy --seconds 300 --loops 8

Beside busy loops, so many for each core, up to twelve members write, join and leave. None of them
fails, so none may be expelled, and each join must succeed. Now and then one is stopped, as SIGSTOP
does: the group goes on without it, in time, and it joins again when it goes on.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.bars import Bar, Figure, Scale, percentile
from tests.campaign.members import Member, Processes, Settings
from tests.lib.processes import Stuck

MEMBERS_MIN, MEMBERS_MAX = 4, 12
DEADLINE = 300.0
"""Seconds that anything may take beside so much else; past that the run is stuck."""
STOP_EVERY = 20
"""One is stopped after so many changes."""
OUT_WITHIN = 5.0
"""Seconds in which one that is stopped must be out: D is half a second."""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@dataclass
class Outcome:
    """What one run came to."""

    changes: int = 0
    joins: int = 0
    expelled: int = 0
    failed: int = 0
    outs: list[float] = field(default_factory=list)
    """In how many seconds those that were stopped were out."""
    wrong: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """In one line."""
        out = f"{percentile(self.outs, 0.5):.1f} s, at the most {max(self.outs, default=0.0):.1f} s"
        return (
            f"{self.changes} changes, {self.joins} joins, {self.failed} failed, "
            f"{self.expelled} expelled; {len(self.outs)} stopped, out after {out}"
        )


class Run:
    """One group beside the busy loops."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.processes = Processes(folder, Settings(degree=1, interval=0.2, objects=1), seed)
        self.folder = folder
        self.outcome = Outcome()
        self.stopped: set[int] = set()
        """The numbers of those that were stopped at any time."""

    def go(self, seconds: float) -> Outcome:
        """Come and go for so long; then all leave."""
        outcome = self.outcome
        try:
            while len(self.processes.members) < MEMBERS_MIN:
                self.join(1)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self.change()
                outcome.changes += 1
                if outcome.changes % STOP_EVERY == 0:
                    self.stop()
            self.settle("all in one view in the end")
            self.processes.finish()
        except Stuck as why:
            outcome.wrong.append(str(why))
        finally:
            self.processes.end()
        for member in self.processes.members:
            self.check(member)
        return outcome

    def settle(self, what: str) -> None:
        """All that are there agree on the members."""
        self.processes.until(self.processes.agreed, what, DEADLINE)

    def change(self) -> None:
        """Some join at once, or one leaves."""
        inside = len(self.processes.inside())
        if inside <= MEMBERS_MIN or (inside < MEMBERS_MAX and self.rng.random() < 0.5):
            self.join(self.rng.randint(1, min(3, MEMBERS_MAX - inside)))
        else:
            gone = self.rng.choice(self.processes.by_age())
            gone.write("stop")
            gone.write("leave")
            self.processes.until(lambda: not gone.runs, f"member {gone.number} leaves", DEADLINE)

    def join(self, count: int) -> None:
        """So many join at once."""
        coming = [self.processes.start() for _ in range(count)]
        for member in coming:
            self.processes.until(
                lambda member=member: member.view or not member.runs,  # type: ignore[misc]
                f"member {member.number} joins",
                DEADLINE,
            )
            self.outcome.joins += 1

    def stop(self) -> None:
        """One stands still until the group goes on without it, and goes on itself then.

        In shared memory the others do so only if it holds them up, so another one leaves meanwhile. (One that
        joined would get the rank of the stopped one, which could not come back.)
        """
        self.settle("all in one view before a stop")
        gone = self.rng.choice(self.processes.by_age())
        before, others = gone.incarnation, [m for m in self.processes.inside() if m is not gone]
        self.stopped.add(gone.number)
        gone.signal(signal.SIGSTOP)
        began = time.monotonic()
        leaver = self.rng.choice(others)
        others.remove(leaver)
        leaver.write("stop")
        leaver.write("leave")
        out = f"member {gone.number} is out"
        self.processes.until(lambda: all(before not in m.members for m in others), out, DEADLINE)
        self.outcome.outs.append(time.monotonic() - began)
        gone.signal(signal.SIGCONT)
        back = f"member {gone.number} is in again"
        self.processes.until(lambda: gone.incarnation != before or not gone.runs, back, DEADLINE)
        self.processes.until(lambda: not leaver.runs, f"member {leaver.number} leaves", DEADLINE)

    def check(self, member: Member) -> None:
        """Whether it was ever taken for dead, and how it ended."""
        said = member.stderr()
        expelled = "was expelled" in said and member.number not in self.stopped
        self.outcome.expelled += expelled
        self.outcome.failed += "JoinFailed" in said
        if expelled or member.trouble or member.process.returncode:
            last = said.strip().splitlines()[-1:]
            self.outcome.wrong.append(
                f"{self.folder}: member {member.number} ended with {member.process.returncode}: "
                f"{[*member.trouble, *last]}"
            )


def run(seconds: float, loops: int, seed: int) -> Outcome:
    """One run beside so many busy loops."""
    with busy(loops):
        return Run(Path(tempfile.mkdtemp(prefix="orcalike-")), seed).go(seconds)


def measure(scale: Scale) -> list[Figure]:
    """G33: 8 busy loops a core."""
    it = run(scale.of(300, 1_200), 8 * (os.cpu_count() or 1), 32)
    met = not (it.expelled or it.failed or it.wrong) and max(it.outs, default=0.0) <= OUT_WITHIN
    return [Figure("G33", it.text, met, it.wrong)]


BARS = [
    Bar(("G33",), {"G33": "0 expelled, 0 joins failed; stopped ones out in 5 s"}, measure),
]


def main() -> None:
    """One run; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="tests.campaign.busy", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--loops", type=int, default=8, help="busy loops for each core")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    it = run(options.seconds, options.loops * (os.cpu_count() or 1), options.seed)
    print(it.text)
    for note in it.wrong:
        print(f"  {note}")
    sys.exit(bool(it.wrong))


if __name__ == "__main__":
    main()
