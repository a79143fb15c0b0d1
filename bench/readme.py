"""Writes the measured figures into README.md and docs/performance.md, each between two comments.

The README has the few that most readers want, in words; the other one has the whole tables.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench.harness import BenchError
from orcalike.bench.results import read_json, words_of
from orcalike.bench.rows import Row
from orcalike.bench.table import table_of

MEMBERS = 3

PHRASES = {
    "read, one attribute, RING": ("a read of one attribute", "the same method of a plain class"),
    "undecorated method, attribute": (
        "any other method of a shared class",
        "the same in a plain class",
    ),
    "write that waits, RING": (
        "a write that waits, from a thread",
        "a ping-pong in C over Unix sockets",
    ),
    "write that waits, RING, coroutine, median": (
        "the median of writes that wait, from a coroutine",
        "the same from a thread",
    ),
    "write that waits, RING, r = 2, median": (
        "the median of writes that wait, if two members may be lost",
        "the same without such a promise",
    ),
    "write, no wait, (int), RING": (
        "a write that does not wait, core time at each replica",
        "the plain call",
    ),
    "write that waits, thread": (
        "a write that waits, through a sequencer",
        "a ping-pong in C over the same sockets",
    ),
    "import orcalike": ("`import orcalike`", "the bare interpreter"),
    "memory of a member": ("memory of a member", "a bare interpreter with uvloop"),
}
"""What the README says of a row, and of what stands beside it."""
RATE = "writes a second that do not wait, each applied three times"

EXAMPLES = """\
examples, from the top of the repository:
  python -m orcalike.bench --json docs/bench/results.json
  python -m orcalike.bench.peers --json docs/bench/peers.json
  python -m orcalike.bench.readme docs/bench
"""


def short(machine: str, rows: Sequence[Row]) -> str:
    """The README's table. Of rows for several sizes of group it has the one for 3 members."""
    lines = ["| | orcalike | beside it | ratio |", "| --- | --- | --- | --- |"]
    for what, (phrase, beside) in PHRASES.items():
        if (row := _chosen(rows, what)) is None:
            continue
        ours, theirs = _rounded(row.ours.median, row.unit), _rounded(row.theirs.median, row.unit)
        ratio = row.ratio.median
        shown = f"{ratio:.{1 if ratio >= 0.95 else 2}f}"
        lines.append(f"| {phrase} | {ours} | {theirs}, {beside} | {shown} |")
    burst = _chosen(rows, "write, no wait, (int), RING")
    if burst is not None and burst.rate is not None:
        lines.append(f"| {RATE} | {burst.rate.median / 1e6:.1f} million | | |")
    return "\n".join(lines) + f"\n\n{machine}.\n"


def ahead(machine: str, rows: Sequence[Row]) -> str:
    """The README's table of peers: how many times faster orcalike is."""
    kinds = {(row.what, row.members): None for row in rows}
    heads = [f"{what}, {members} member{'s' if members > 1 else ''}" for what, members in kinds]
    lines = [f"| beside | {' | '.join(heads)} |", f"| ---{' | ---' * len(heads)} |"]
    for beside in dict.fromkeys(row.beside for row in rows):
        found = {(row.what, row.members): row for row in rows if row.beside == beside}
        cells = [_times(found[kind].ratio.median) if kind in found else "" for kind in kinds]
        lines.append(f"| {beside} | {' | '.join(cells)} |")
    return "\n".join(lines) + f"\n\n{machine}.\n"


def whole(machine: str, rows: Sequence[Row]) -> str:
    """All rows, those of the order in shared memory first, which is the usual one on one host."""
    first = sorted(rows, key=lambda row: "RING" not in row.what)
    return f"{machine}:\n\n```\n{table_of(first)}```\n"


def _chosen(rows: Sequence[Row], what: str) -> Row | None:
    found = [row for row in rows if row.what == what]
    return next((row for row in found if row.members == MEMBERS), found[0] if found else None)


def _times(ratio: float) -> str:
    return f"{float(f'{ratio:.2g}'):,.10g}"


def _rounded(value: float, unit: str) -> str:
    return f"{value:.{1 if value < 9.5 else 0}f} {unit.replace('us', 'µs')}"


@dataclass(frozen=True)
class Place:
    """Where figures stand, which, and what they look like there."""

    document: str
    region: str
    results: str
    figures: Callable[[str, Sequence[Row]], str]

    def replaced(self, text: str, figures: str) -> str:
        """The text with these figures; raises BenchError if it has no place for them."""
        begin, end = f"<!-- {self.region} -->", f"<!-- end of {self.region} -->"
        region = re.compile(f"(?<={begin}\n).*?(?={end}\n)", re.DOTALL)
        changed, count = region.subn(lambda _: figures, text)
        if count != 1:
            raise BenchError(f"{self.document} has no place for figures: {begin} and {end}")
        return changed


PLACES = (
    Place("README.md", "figures", "results.json", short),
    Place("README.md", "peers", "peers.json", ahead),
    Place("docs/performance.md", "figures", "results.json", whole),
    Place("docs/performance.md", "peers", "peers.json", whole),
)


def changes(results: Path, root: Path) -> dict[Path, str]:
    """Each document and its text with the results of a folder; raises BenchError without a place."""
    found: dict[Path, str] = {}
    for place in PLACES:
        machine, rows = read_json(results / place.results)
        document = root / place.document
        try:
            text = found[document] if document in found else document.read_text(encoding="utf-8")
        except OSError as error:
            raise BenchError(f"{error}; start it at the top of the repository") from None
        found[document] = place.replaced(text, place.figures(words_of(machine), rows))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files anew; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m orcalike.bench.readme",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, help="the folder of results.json and peers.json")
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
