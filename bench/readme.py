"""Writes the measured figures into README.md and docs/performance.md, between two comments.

The README has the few that most readers want, in words; the other one has the whole table.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from orcalike.bench.harness import BenchError
from orcalike.bench.results import read_json, words_of
from orcalike.bench.rows import Row
from orcalike.bench.table import table_of

REGION = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->\n)", re.DOTALL)
MEMBERS = 3

PHRASES = {
    "read, one attribute": ("a read of one attribute", "the same method of a plain class"),
    "undecorated method, attribute": (
        "any other method of a shared class",
        "the same in a plain class",
    ),
    "write that waits, thread": (
        "a write that waits, from a thread",
        "a ping-pong in C over the same sockets",
    ),
    "write that waits, coroutine": (
        "a write that waits, from a coroutine",
        "a ping-pong on uvloop",
    ),
    "write that waits, r = 1": (
        "a write that waits, one member may be lost",
        "the same without such a promise",
    ),
    "write, no wait, (int)": (
        "a write that does not wait, core time at each replica",
        "the plain call",
    ),
    "import orcalike": ("`import orcalike`", "the bare interpreter"),
    "memory of a member": ("memory of a member", "a bare interpreter with uvloop"),
}
"""What the README says of a row, and of what stands beside it."""
RATE = "writes a second that do not wait, each applied three times"

EXAMPLES = """\
examples, from the top of the repository:
  python -m orcalike.bench --json docs/bench/results.json
  python -m orcalike.bench.readme docs/bench/results.json
"""


def short(machine: str, rows: Sequence[Row]) -> str:
    """The README's table. Of rows for several sizes of group it has the one for 3 members."""
    lines = ["| | orcalike | beside it | ratio |", "| --- | --- | --- | --- |"]
    for what, (phrase, beside) in PHRASES.items():
        if (row := _chosen(rows, what)) is None:
            continue
        ours, theirs = _rounded(row.ours.median, row.unit), _rounded(row.theirs.median, row.unit)
        lines.append(f"| {phrase} | {ours} | {theirs}, {beside} | {row.ratio.median:.1f} |")
    burst = _chosen(rows, "write, no wait, (int)")
    if burst is not None and burst.rate is not None:
        lines.append(f"| {RATE} | {burst.rate.median / 1e6:.1f} million | | |")
    return "\n".join(lines) + f"\n\n{machine}.\n"


def whole(machine: str, rows: Sequence[Row]) -> str:
    """All rows, as they are printed."""
    return f"{machine}:\n\n```\n{table_of(rows)}```\n"


def _chosen(rows: Sequence[Row], what: str) -> Row | None:
    found = [row for row in rows if row.what == what]
    return next((row for row in found if row.members == MEMBERS), found[0] if found else None)


def _rounded(value: float, unit: str) -> str:
    return f"{value:.0f} {unit.replace('us', 'µs')}"


def replaced(text: str, figures: str) -> str:
    """The text with these figures; raises BenchError where it has no place for them."""
    changed, count = REGION.subn(lambda _: figures, text)
    if count != 1:
        raise BenchError("no place for figures: <!-- figures --> and <!-- end of figures -->")
    return changed


PLACES: dict[str, Callable[[str, Sequence[Row]], str]] = {
    "README.md": short,
    "docs/performance.md": whole,
}


def changes(results: Path, root: Path) -> dict[Path, str]:
    """Each file and its text with these results; raises BenchError where there is no place."""
    machine, rows = read_json(results)
    found = {}
    for name, figures in PLACES.items():
        try:
            text = (root / name).read_text(encoding="utf-8")
        except OSError as error:
            raise BenchError(f"{error}; start it at the top of the repository") from None
        found[root / name] = replaced(text, figures(words_of(machine), rows))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files anew; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m orcalike.bench.readme",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, help="what a measurement wrote with --json")
    options = parser.parse_args(arguments)
    try:
        found = changes(options.results, Path())
    except BenchError as error:
        print(f"readme: {error}", file=sys.stderr)
        return 1
    for file, text in found.items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
