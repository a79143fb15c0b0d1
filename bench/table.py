"""The table of figures: each beside its limit, with the ratio of both and the bar that it must meet."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orcalike.bench.harness import BenchError, Spread, ratios, time_limit


@dataclass(frozen=True)
class Bar:
    """What a ratio must be, and what is aimed at: at most, or `at_least`."""

    must: float
    aim: float | None = None
    at_least: bool = False
    extra: float | None = None
    """How much more the figure may be than what stands beside it, in its unit."""

    def __str__(self) -> str:
        words = f"{self.must:g}x" + (" or more" if self.at_least else "")
        return words if self.extra is None else f"{words}, +{self.extra:g}"


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, its limit, and the ratio of both, round by round."""

    what: str
    members: int
    unit: str
    ours: Spread
    beside: str
    theirs: Spread
    ratio: Spread
    bar: Bar | None
    rate: Spread | None  # writes a second, of all members together
    samples: dict[str, list[float]]

    @property
    def falls_short(self) -> bool:
        """Whether three quarters of the rounds, or the median of what is extra, miss the bar.

        Half of the rounds on the wrong side may be the machine's; three quarters are not.
        """
        if self.bar is None:
            return False
        if self.bar.extra is not None and self.ours.median - self.theirs.median > self.bar.extra:
            return True
        return (
            self.ratio.high < self.bar.must if self.bar.at_least else self.ratio.low > self.bar.must
        )

    @property
    def verdict(self) -> str:
        """In a word: `short`, `near` (half of the rounds miss the bar), `met` or `aim`."""
        if self.bar is None:
            return ""
        if self.falls_short:
            return "short"
        sign = -1 if self.bar.at_least else 1
        if sign * self.ratio.median > sign * self.bar.must:
            return "near"
        aimed = self.bar.aim is not None and sign * self.ratio.median <= sign * self.bar.aim
        return "aim" if aimed else "met"


def compare(
    what: str,
    members: int,
    unit: str,
    ours: list[float],
    beside: str,
    theirs: list[float],
    bar: Bar | None = None,
    rates: list[float] | None = None,
) -> Row:
    """A row of samples, in `unit`."""
    return Row(
        what,
        members,
        unit,
        Spread.of(ours),
        beside,
        Spread.of(theirs),
        Spread.of(ratios(ours, theirs)),
        bar,
        Spread.of(rates) if rates else None,
        {"ours": ours, "theirs": theirs, "rates": rates or []},
    )


def scaled(samples: Sequence[float], factor: float) -> list[float]:
    """In another unit."""
    return [sample * factor for sample in samples]


HEADS = (
    "", "members", "orcalike", "beside", "", "ratio", "half within", "must", "verdict", "writes/s",
)  # fmt: skip


def print_table(rows: Sequence[Row]) -> None:
    """For people."""
    lines = [HEADS, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    for line in lines:
        print(
            "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    return (
        row.what,
        str(row.members),
        figure(row.ours.median, row.unit),
        figure(row.theirs.median, row.unit),
        row.beside,
        f"{row.ratio.median:.2f}x",
        f"{row.ratio.low:.2f} - {row.ratio.high:.2f}",
        str(row.bar) if row.bar else "",
        row.verdict,
        f"{row.rate.median / 1e6:.2f} M" if row.rate else "",
    )


def figure(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit == "/s":
        return f"{value / 1e6:.2f} M/s" if value >= 1e5 else f"{value:.0f} /s"
    return f"{value:.1f} {unit}"


def machine() -> dict[str, Any]:
    """What the figures belong to, in general terms."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
    }


def add_options(parser: argparse.ArgumentParser, time_limit: int) -> None:
    """What every measurement that prints a table understands; the time limit is in seconds."""
    parser.add_argument("--quick", action="store_true", help="few and short rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and samples there")
    parser.add_argument(
        "--time-limit",
        type=int,
        default=time_limit,
        metavar="S",
        help="seconds; default: %(default)s",
    )


def report(name: str, options: argparse.Namespace, measure: Callable[[], list[Row]]) -> int:
    """Measure within the time limit, print the table, keep the samples; returns the exit code.

    It is 1 where a row falls short of its bar, unless the figures mean little (`--quick`).
    """
    try:
        with time_limit(options.time_limit):
            rows = measure()
    except BenchError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(
        ", ".join(
            f"{value} {name}" if name == "cores" else str(value)
            for name, value in machine().items()
        )
    )
    print_table(rows)
    if options.json:
        result = {
            "machine": machine(),
            "rows": [{**asdict(row), "verdict": row.verdict} for row in rows],
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    short = [] if options.quick else [row for row in rows if row.falls_short]
    for row in short:
        print(f"{name}: {row.what}, {row.members} members: short of {row.bar}", file=sys.stderr)
    return 1 if short else 0
