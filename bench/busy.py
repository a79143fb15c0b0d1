"""Measures a member whose main thread computes: when it sees the writes of others, and what they feel.

The worker runs a loop of pure Python on a core of its own; the member that writes, and the witness,
are on another one. A write carries the time at which it was called, and the worker keeps how long
that was ago when the operation is applied there. That stands beside the same at a worker that does
nothing. The second part are writes that wait, one after the other: with the busy worker in the
group, beside a process that is as busy on the same core, but in no group.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench import processes
from orcalike.bench.busy_member import WORKER
from orcalike.bench.harness import OVER_SEQUENCER, Lacking, Program, interleave
from orcalike.bench.table import Bar, Row, compare, run_script, scaled

HERE = Path(__file__).parent
MEMBERS = 3

EXAMPLES = """\
examples:
  python -m orcalike.bench.busy             half a minute
  python -m orcalike.bench.busy --quick     a look at the rows; the figures mean little
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    seen: int
    waits: int


FULL = Effort(rounds=9, seen=150, waits=2000)
QUICK = Effort(rounds=2, seen=20, waits=50)


def start() -> Program:
    """The group, with the worker on a core of its own; raises Lacking if there is but one."""
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise Lacking("a busy worker needs a core for itself, and there is one in all")
    run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", *OVER_SEQUENCER]
    program = Program([*run, "-n", str(MEMBERS), str(HERE / "busy_member.py")])
    program.ask("wait idle 1")  # it is up
    program.run_on({min(cores)})
    processes.pin(processes.ranks(program)[WORKER], {max(cores)})
    return program


def measure(quick: bool) -> list[Row]:
    """All rows."""
    effort = QUICK if quick else FULL
    latencies: dict[str, list[float]] = {"inside": [], "idle": []}
    with start() as program:

        def see(where: str) -> float:
            taken = [float(it) for it in program.ask(f"seen {where} {effort.seen}")]
            latencies[where].append(statistics.quantiles(taken, n=100)[98])
            return statistics.median(taken)

        seen = interleave(
            effort.rounds, {"inside": lambda: see("inside"), "idle": lambda: see("idle")}
        )

        def wait(where: str) -> float:
            return float(program.ask(f"wait {where} {effort.waits}"))

        waits = interleave(
            effort.rounds, {"inside": lambda: wait("inside"), "outside": lambda: wait("outside")}
        )
    tails = {where: taken[-effort.rounds :] for where, taken in latencies.items()}
    inside, idle = (scaled(seen[where], 1e-3) for where in ("inside", "idle"))
    tail, idle_tail = (scaled(tails[where], 1e-3) for where in ("inside", "idle"))
    within, outside = (scaled(waits[where], 1e6) for where in ("inside", "outside"))
    n = MEMBERS
    bar = Bar(most=400, most_aim=75)
    return [
        compare("seen by a busy worker, median", n, "us", inside, "by an idle one", idle, bar),
        compare("seen by a busy worker, 99 %", n, "us", tail, "by an idle one", idle_tail),
        compare(
            "write that waits, of the others", n, "us", within, "as busy outside", outside,
            Bar(1.15, 1.05),
        ),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("busy", texts, measure, time_limit=120, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
