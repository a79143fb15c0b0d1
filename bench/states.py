"""Measures what comparing states costs: writes with digests of states, beside `ORCALIKE_CHECK=none`.

Both groups run the same program in interleaved rounds. What is compared is the time that all their processes have
had a core for, the sequencer's too: it hardly changes with what else the machine does, where the time
on the wall does. What a write costs besides (to note that its object was written) is in both.
docs/performance.md has the figures, and those of looks at larger states (`--looks`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orcalike.bench.harness import OVER_SEQUENCER, Program, interleave
from orcalike.bench.table import Bar, Row, add_options, compare, report, scaled
from orcalike.runtime.digests import (
    LOOK_VALUES,
    LOOKS,
    PART,
    PERIOD,
    VALUE_NS,
    VALUES_AT_PLACE,
    VALUES_MAX,
)
from orcalike.runtime.marshal import Codec
from orcalike.runtime.state_digest import Look

HERE = Path(__file__).parent
MEMBERS = 3
BAR = Bar(1.01, 1.005)
EXAMPLES = """\
examples:
  python -m orcalike.bench.states            both rows; about a minute
  python -m orcalike.bench.states --looks    what looks at states of some kinds take, in this process
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured. Looks and reports come at their own times: all rounds have their part."""

    rounds: int
    waits: int
    bursts: int  # of each member, in one round


FULL = Effort(rounds=25, waits=8_000, bursts=200_000)
QUICK = Effort(rounds=2, waits=200, bursts=3_000)


def measure(quick: bool) -> list[Row]:
    """Both rows."""
    return rows(QUICK if quick else FULL)


def rows(effort: Effort) -> list[Row]:
    """A write that waits, pinned to one core, and writes that do not, on all."""
    run = [sys.executable, "-P", "-m", "orcalike", "run", "--quiet", "--no-prefix", *OVER_SEQUENCER]
    member = [*run, "-n", str(MEMBERS), str(HERE / "member.py")]
    cores = os.sched_getaffinity(0)
    with ExitStack() as stack:
        programs = {
            check: stack.enter_context(Program(["env", f"ORCALIKE_CHECK={check}", *member]))
            for check in ("", "none")
        }
        for program in programs.values():
            program.ask("wait 1")  # it is up
            program.run_on({max(cores)})
        waits = interleaved(programs, effort, f"wait {effort.waits}", effort.waits, 1e6)
        for program in programs.values():
            program.run_on(cores)
        applied = effort.bursts * MEMBERS**2
        bursts = interleaved(programs, effort, f"int {effort.bursts}", applied, 1e9)
    beside, what = "states not compared", "{}, core time"
    return [
        compare(
            what.format("write that waits"), MEMBERS, "us", waits[""], beside, waits["none"], BAR
        ),
        compare(
            what.format("write, no wait"), MEMBERS, "ns", bursts[""], beside, bursts["none"], BAR
        ),
    ]


def interleaved(
    programs: dict[str, Program], effort: Effort, order: str, count: int, factor: float
) -> dict[str, list[float]]:
    """Core time of all processes for each of `count` operations, by program."""

    def sample(program: Program) -> Callable[[], float]:
        def take() -> float:
            before = program.core_seconds()
            program.ask(order)
            return (program.core_seconds() - before) / count

        return take

    taken = interleave(effort.rounds, {name: sample(it) for name, it in programs.items()})
    return {name: scaled(samples, factor) for name, samples in taken.items()}


# Looks at larger states.

STATES: dict[str, tuple[int, Callable[[], Any]]] = {
    "1 object of two small values": (1, lambda: [1, "two"]),
    "4 objects of two small values": (4, lambda: [1, "two"]),
    "32 objects of two small values, where 1,024 wait": (32, lambda: [1, "two"]),
    "1 object with a list of 100,000 ints": (1, lambda: [list(range(100_000))]),
    "4 such": (4, lambda: [list(range(100_000))]),
    "4 objects with a dict of 1,000 ints": (4, lambda: [{i: i for i in range(1000)}]),
    "4 objects with a dict of 300 lists": (4, lambda: [{i: [i, 1.5, "x"] for i in range(300)}]),
    "4 objects with 1 MB of bytes": (4, lambda: [bytes(1_000_000)]),
}
ROUNDS = 200


def look_at_states() -> str:
    """A table: processor time of one place of looks, the time until the next, and their ratio."""
    codec = Codec(lambda value: None, lambda number: None)
    lines = ["| what is looked at | a look, µs | then not for, ms | part of a core |"]
    lines.append("| --- | --- | --- | --- |")
    for name, (count, make) in STATES.items():
        states = [make() for _ in range(count)]
        most = LOOKS * VALUES_MAX // max(count, LOOKS) if count > LOOKS + 1 else VALUES_MAX
        best, values = float("inf"), 0
        for number in range(ROUNDS):
            began, values = time.thread_time_ns(), 0
            for state in states:
                look = Look(codec, most, number)
                look.digest_of_values(state)
                values += look.values + LOOK_VALUES
            best = min(best, time.thread_time_ns() - began)
        period = max(PERIOD, min(values, VALUES_AT_PLACE) * VALUE_NS * PART)
        lines.append(f"| {name} | {best / 1e3:,.0f} | {period / 1e6:,.0f} | {best / period:.2%} |")
    return "\n".join(lines)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, time_limit=600)
    parser.add_argument("--looks", action="store_true", help="looks at states of some kinds")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    options = parse(arguments)
    if options.looks:
        print(look_at_states())
        return 0
    return report("states", options, lambda: measure(options.quick))


if __name__ == "__main__":
    sys.exit(main())
