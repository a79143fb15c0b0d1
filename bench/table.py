"""The table of figures: each beside its limit, with the ratio of both and the bar that it must meet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from orcalike.bench.bars import Bar
from orcalike.bench.harness import BenchError, require_uvloop, time_limit
from orcalike.bench.results import machine, words_of, write_csv, write_json
from orcalike.bench.rows import Row, compare, scaled

__all__ = [
    "Bar",
    "Row",
    "add_options",
    "compare",
    "report",
    "run_script",
    "scaled",
    "table_of",
]


HEADS = (
    "", "members", "orcalike", "beside", "", "ratio", "half within", "must", "aim", "verdict",
    "writes/s",
)  # fmt: skip


def table_of(rows: Sequence[Row]) -> str:
    """The table, for people; each line has an end."""
    lines = [HEADS, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    padded = ([cell.ljust(width) for cell, width in zip(it, widths, strict=True)] for it in lines)
    return "".join(f"{'  '.join(line).rstrip()}\n" for line in padded)


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

    It is 1 if a row falls short of its bar, unless the figures mean little (`--quick`).
    """
    try:
        require_uvloop()
        with time_limit(options.time_limit):
            rows = measure()
    except BenchError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(words_of(machine()))
    print(table_of(rows), end="")
    if options.json:
        write_json(rows, options.json)
    if options.csv:
        write_csv(rows, options.csv)
    short = [] if options.quick else [row for row in rows if row.bar and row.falls_short]
    for row in short:
        bar = row.bar.words(row.unit) if row.bar else ""
        print(
            f"{name}: {row.what}, {row.members} members, beside {row.beside}: short of {bar}",
            file=sys.stderr,
        )
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

    `texts` are its description and its examples; `measure` is called with whether to be quick.
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
