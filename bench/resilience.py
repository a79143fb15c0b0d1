"""Measures what resilience costs: writes of degree 0, 1, 2 and "majority", and the fast path before.

The degrees are measured in interleaved rounds, each beside r = 0. With `--before` the fast path of r = 0 is measured
beside that of another checkout, built in place: both run the same programs of this folder.
Calls that wait are pinned to one core; others have all cores.
docs/resilience.md has the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench.harness import OVER_SEQUENCER, Program, interleave
from orcalike.bench.table import Bar, Row, add_options, compare, report, scaled

HERE = Path(__file__).parent
DEGREES = ("0", "1", "2", "majority")

EXAMPLES = """\
examples:
  python -m orcalike.bench.resilience                      the degrees; about a minute
  python -m orcalike.bench.resilience --quick              a look at all rows; the figures mean little
  git worktree add /tmp/before COMMIT
  (cd /tmp/before && python setup.py build_ext --inplace)
  python -m orcalike.bench.resilience --before /tmp/before
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured. Many short rounds: the machine's speed changes all the time."""

    rounds: int
    waits: int
    bursts: int  # of each member, in one round
    calls: int


FULL = Effort(rounds=25, waits=500, bursts=200_000, calls=300_000)
QUICK = Effort(rounds=2, waits=200, bursts=3_000, calls=10_000)


def start(stack: ExitStack, members: int, *arguments: str, checkout: Path | None = None) -> Program:
    """A group that runs `member.py`, with the orcalike of another checkout if one is given."""
    other = ["env", f"PYTHONPATH={checkout}"] if checkout else []
    command = [
        *other,
        sys.executable,
        "-P",
        "-m",
        "orcalike",
        "run",
        "--quiet",
        "--no-prefix",
        *OVER_SEQUENCER,
    ]
    member = [str(HERE / "member.py"), *arguments]
    program = stack.enter_context(Program([*command, "-n", str(members), *member]))
    program.ask("wait 1")  # it is up
    return program


class Rounds:
    """Programs of one size of group that are measured in interleaved rounds; the samples are by their names."""

    def __init__(self, members: int, effort: Effort, programs: dict[str, Program]) -> None:
        self.members = members
        self.effort = effort
        self.programs = programs
        self.cores = os.sched_getaffinity(0)

    def alone(self, kind: str, count: int) -> dict[str, list[float]]:
        """What rank 0 does alone, or waits for: pinned to one core."""
        return self.each(dict.fromkeys(self.programs, f"{kind} {count}"))

    def each(self, lines: Mapping[str, str]) -> dict[str, list[float]]:
        """What each program answers to its line: pinned to one core."""
        for program in self.programs.values():
            program.run_on({max(self.cores)})
        measures = {
            name: lambda name=name, line=line: float(self.programs[name].ask(line))
            for name, line in lines.items()
        }
        return interleave(self.effort.rounds, measures)

    def bursts(self) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """Writes a second of all members together, and core time of each at each member."""
        core: dict[str, list[float]] = {name: [] for name in self.programs}
        for program in self.programs.values():
            program.run_on(self.cores)
        measures = {
            name: lambda name=name, program=program: self._burst(program, core[name])
            for name, program in self.programs.items()
        }
        taken = interleave(self.effort.rounds, measures)
        rates = {name: [1 / seconds for seconds in samples] for name, samples in taken.items()}
        return rates, {name: samples[-self.effort.rounds :] for name, samples in core.items()}

    def _burst(self, program: Program, core: list[float]) -> float:
        before = program.core_seconds()
        seconds = float(program.ask(f"int {self.effort.bursts}"))
        spent = program.core_seconds() - before
        core.append(spent / (self.effort.bursts * self.members**2))
        return seconds


def degrees(members: int, effort: Effort, *, bursts: bool) -> list[Row]:
    """Each degree beside r = 0."""
    rows = []
    with ExitStack() as stack:
        programs = {it: start(stack, members, f"--resilience={it}") for it in DEGREES}
        waits = Rounds(members, effort, programs).alone("wait", effort.waits)
        none = scaled(waits["0"], 1e6)
        for it in DEGREES[1:]:
            what, bar = f"write that waits, r = {it}", Bar(1.6, 1.3) if it == "1" else None
            rows.append(compare(what, members, "us", scaled(waits[it], 1e6), "r = 0", none, bar))
        if bursts:
            both = {it: programs[it] for it in ("0", "1")}
            rates, _ = Rounds(members, effort, both).bursts()
            what, bar = "rate, no wait, r = 1", Bar(0.85, 0.95, at_least=True)
            rows.append(compare(what, members, "/s", rates["1"], "r = 0", rates["0"], bar))
    return rows


def fast_path(members: int, effort: Effort, before: Path, *, bursts: bool) -> list[Row]:
    """Now beside then, r = 0."""
    rows = []
    with ExitStack() as stack:
        sides = {"now": None, "then": before}
        programs = {
            name: start(stack, members, checkout=checkout) for name, checkout in sides.items()
        }
        rounds = Rounds(members, effort, programs)

        def row(what: str, unit: str, samples: dict[str, list[float]], factor: float) -> Row:
            now, then = (scaled(samples[name], factor) for name in sides)
            return compare(what, members, unit, now, "before", then, Bar(1.10))

        rows.append(row("write that waits", "us", rounds.alone("wait", effort.waits), 1e6))
        if bursts:
            rows.append(row("read", "ns", rounds.alone("shared_read", effort.calls), 1e9))
            _, core = rounds.bursts()
            rows.append(row("core time of a write, no wait", "ns", core, 1e9))
    return rows


def measure(effort: Effort, before: Path | None) -> list[Row]:
    """All rows. The programs of one size of group run at a time."""
    rows = degrees(3, effort, bursts=True) + degrees(5, effort, bursts=False)
    if before is not None:
        for members in (1, 3):
            rows += fast_path(members, effort, before, bursts=members == 3)
    return rows


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, time_limit=300)
    parser.add_argument("--before", type=Path, metavar="DIR", help="a checkout to compare with")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    options = parse(arguments)
    effort = QUICK if options.quick else FULL
    return report("resilience", options, lambda: measure(effort, options.before))


if __name__ == "__main__":
    sys.exit(main())
