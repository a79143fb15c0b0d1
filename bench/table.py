"""The table of figures: each beside its limit, with the ratio of both and the bar that it must meet."""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orcalike.bench.bars import Bar, Limit
from orcalike.bench.harness import BenchError, Spread, ratios, time_limit

__all__ = [
    "Bar",
    "Row",
    "add_options",
    "compare",
    "print_table",
    "report",
    "result_of",
    "run_script",
    "scaled",
    "write_csv",
]


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
    def extra(self) -> Spread:
        """How much more the figure is than what stands beside it, round by round."""
        pairs = zip(self.samples["ours"], self.samples["theirs"], strict=True)
        return Spread.of([ours - theirs for ours, theirs in pairs])

    @property
    def limits(self) -> list[Limit]:
        """What the bar asks for."""
        if (bar := self.bar) is None:
            return []
        asked = (
            (self.ratio, bar.must, bar.aim, bar.at_least),
            (self.extra, bar.extra, bar.extra_aim, False),
            (self.ours, bar.most, bar.most_aim, False),
        )
        return [Limit(it, must, aim, most) for it, must, aim, most in asked if must is not None]

    @property
    def falls_short(self) -> bool:
        """Whether the bar is missed by more than the noise."""
        return any(limit.falls_short for limit in self.limits)

    @property
    def verdict(self) -> str:
        """In a word: `short`, `near` (half of the rounds miss the bar), `met` or `aim`."""
        if not self.limits:
            return ""
        if self.falls_short:
            return "short"
        if any(limit.near for limit in self.limits):
            return "near"
        return "aim" if all(limit.aimed for limit in self.limits) else "met"


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
    "", "members", "orcalike", "beside", "", "ratio", "half within", "must", "aim", "verdict",
    "writes/s",
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
        row.bar.words(row.unit) if row.bar else "",
        row.bar.words(row.unit, aim=True) if row.bar else "",
        row.verdict,
        f"{row.rate.median / 1e6:.2f} M" if row.rate else "",
    )


def figure(value: float, unit: str) -> str:
    """A value with its unit."""
    if unit == "/s":
        return f"{value / 1e6:.2f} M/s" if value >= 1e5 else f"{value:.1f} /s"
    return f"{value:.1f} {unit}"


def machine() -> dict[str, Any]:
    """What the figures belong to, in general terms."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
    }


def result_of(rows: Sequence[Row]) -> dict[str, Any]:
    """What `--json` keeps: the machine in general terms, and all rows with their samples."""
    return {
        "machine": machine(),
        "rows": [{**asdict(row), "verdict": row.verdict} for row in rows],
    }


def write_csv(rows: Sequence[Row], file: Path) -> None:
    """One line for each row: medians and quartiles, in the row's unit."""
    quartiles = [f"{it}_{part}" for it in ("ours", "theirs", "ratio") for part in Spread.PARTS]
    heads = ["what", "members", "unit", "beside", *quartiles]
    heads += ["writes_per_second", "must", "aim", "verdict"]
    with file.open("w", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(heads)
        for row in rows:
            spreads = (row.ours, row.theirs, row.ratio)
            figures = [getattr(it, part) for it in spreads for part in Spread.PARTS]
            figures += [row.rate.median] if row.rate else []
            words = [f"{value:.6g}" for value in figures] + ([] if row.rate else [""])
            bar = row.bar or Bar()
            words += [bar.words(row.unit), bar.words(row.unit, aim=True), row.verdict]
            lines.writerow([row.what, row.members, row.unit, row.beside, *words])


def add_options(parser: argparse.ArgumentParser, time_limit: int) -> None:
    """What every measurement that prints a table understands; the time limit is in seconds."""
    parser.add_argument("--quick", action="store_true", help="few and short rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and samples there")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table there")
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
    here = machine()
    print(f"{here['cores']} cores, {here['python']}, {here['system']}")
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(result_of(rows), indent=1) + "\n")
    if options.csv:
        write_csv(rows, options.csv)
    short = [] if options.quick else [row for row in rows if row.bar and row.falls_short]
    for row in short:
        bar = row.bar.words(row.unit) if row.bar else ""
        print(f"{name}: {row.what}, {row.members} members: short of {bar}", file=sys.stderr)
    return 1 if short else 0


def run_script(
    name: str,
    texts: tuple[str | None, str],
    measure: Callable[[bool], list[Row]],
    *,
    time_limit: int,
    arguments: Sequence[str] | None = None,
) -> int:
    """The command line of a measurement that has no options of its own; returns the exit code.

    `texts` are its description and its examples; `measure` is told whether to be quick.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m orcalike.bench.{name}",
        description=texts[0],
        epilog=texts[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser, time_limit)
    options = parser.parse_args(arguments)
    return report(name, options, lambda: measure(options.quick))
