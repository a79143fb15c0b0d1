"""Measures what a packet costs the process that orders, over the size of what is in it.

It passes packets on and does not look into them, so all that a larger one may cost more is the copying.
Beside it is the process in the middle of the ping-pong in C, which passes on as many bytes. One member
of three writes and waits, so each write is a packet; all are pinned to one core. What is checked is a
packet with the largest contents, beside what the smallest one costs and what C's copying adds to it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench import processes
from orcalike.bench.harness import OVER_SEQUENCER, Program, interleave
from orcalike.bench.pingpong import FRAME, compiled
from orcalike.bench.table import Bar, Row, compare, run_script

HERE = Path(__file__).parent
MEMBERS = 3
SIZES = (16, 128, 1024, 4096, 8192)
"""Bytes of the contents."""

EXAMPLES = """\
examples:
  python -m orcalike.bench.sequencer             some twenty seconds
  python -m orcalike.bench.sequencer --quick     a look at the rows; the figures mean little
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rounds: int
    packets: int


FULL = Effort(rounds=15, packets=1000)
QUICK = Effort(rounds=2, packets=200)


def cost(program: Program, order: object, pid: int, packets: int) -> Callable[[], float]:
    """A round: microseconds of core time that a packet costs that process."""

    def sample() -> float:
        before = processes.core_seconds(pid)
        program.ask(order)
        return (processes.core_seconds(pid) - before) / packets * 1e6

    return sample


def middle(program: Program) -> int:
    """The process of a ping-pong that passes messages on: its first child."""
    pid = program.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def take(effort: Effort) -> dict[str, list[float]]:
    """The samples of both sides, by side and size."""
    run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", *OVER_SEQUENCER]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        pingpong = compiled(Path(folder))
        program = stack.enter_context(Program([*run, "-n", str(MEMBERS), str(HERE / "member.py")]))
        limits = {
            size: stack.enter_context(Program([pingpong, str(MEMBERS), str(FRAME + size)]))
            for size in SIZES
        }
        program.ask("wait 1")
        for limit in limits.values():
            limit.ask(1)
        core = {max(os.sched_getaffinity(0))}
        for it in (program, *limits.values()):
            it.run_on(core)
        witness = processes.ranks(program)[processes.WITNESS]
        measures = {}
        for size, limit in limits.items():
            count = effort.packets
            measures[f"ours {size}"] = cost(program, f"text:{size} {count}", witness, count)
            measures[f"theirs {size}"] = cost(limit, count, middle(limit), count)
        return interleave(effort.rounds, measures)


def measure(quick: bool) -> list[Row]:
    """A row for each size, and the largest beside the smallest. Raises Lacking without a compiler."""
    samples = take(QUICK if quick else FULL)
    rows = [
        compare(
            f"sequencer, packet of {size} bytes", MEMBERS, "us",
            samples[f"ours {size}"], "C", samples[f"theirs {size}"],
        )
        for size in SIZES
    ]  # fmt: skip
    small, large = SIZES[0], SIZES[-1]
    flat = [
        ours + more - less
        for ours, more, less in zip(
            *(samples[name] for name in (f"ours {small}", f"theirs {large}", f"theirs {small}")),
            strict=True,
        )
    ]
    what, beside = f"sequencer, {large} bytes, not {small}", f"{small} bytes, and C's copying"
    bar = Bar(1.25, 1.1)
    return [*rows, compare(what, MEMBERS, "us", samples[f"ours {large}"], beside, flat, bar)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("sequencer", texts, measure, time_limit=120, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
