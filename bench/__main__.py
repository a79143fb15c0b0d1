"""Measures all that needs no peers, and prints it as one table of bars and figures.

Every figure stands beside a limit that was measured in the same run, in interleaved rounds. The exit code is 1
if a figure falls short of its bar by more than the noise. docs/performance.md says what each
figure means.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from orcalike.bench import parts
from orcalike.bench.table import Row, add_options, report

LIMIT = 600
"""Seconds; a full run takes about half of it."""

EXAMPLES = """\
examples:
  python -m orcalike.bench                              the whole table; some minutes
  python -m orcalike.bench --quick                      a look at all rows; the figures mean little
  python -m orcalike.bench --only reads,waits           some parts only
  python -m orcalike.bench --json now.json --plot .     with all samples, and as pictures
"""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    names = "\n".join(f"  {name:<12}{what}" for name, what in parts.PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m orcalike.bench",
        description=__doc__,
        epilog=f"parts:\n{names}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser, LIMIT)
    parser.add_argument(
        "--members",
        type=int,
        nargs="+",
        default=list(parts.MEMBERS),
        metavar="N",
        help="sizes of groups whose invocations are measured; default: %(default)s",
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PART", help="these parts, with commas or without"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="draw pictures there (pip install orcalike[bench])"
    )
    options = parser.parse_args(arguments)
    if not all(0 < size <= parts.MEMBERS_MAX for size in options.members):
        parser.error(f"a group has 1 to {parts.MEMBERS_MAX} members here")
    try:
        options.only = parts.parse_parts(options.only)
    except ValueError as error:
        parser.error(str(error))
    return options


def say(line: str) -> None:
    """A line that is no result."""
    print(f"bench: {line}", file=sys.stderr)


def progress(part: str) -> None:
    """Say what comes next, on a terminal."""
    if sys.stderr.isatty():
        say(f"{part} ...")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, draw the pictures; returns the exit code."""
    options = parse(arguments)
    rows: list[Row] = []

    def measure() -> list[Row]:
        if options.plot:
            from orcalike.bench import plot

            plot.check()
        rows.extend(
            parts.measure(
                options.only,
                quick=options.quick,
                members=options.members,
                progress=progress,
                lacking=say,
            )
        )
        return rows

    code = report("bench", options, measure)
    if options.plot and rows:
        from orcalike.bench import plot

        plot.draw(rows, options.plot)
    return code


if __name__ == "__main__":
    sys.exit(main())
