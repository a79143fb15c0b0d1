"""Measures orcalike beside what people would use instead: Manager, Redis, Ray, Dask, PySyncObj, JGroups.

Each is set up for speed, as its documentation says, with 3 members; what is not installed is skipped,
and said. Every figure is taken in interleaved rounds with orcalike's, and every ratio says how many times faster
orcalike is. Calls that wait are pinned to one core, on both sides; others have all cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from orcalike.bench.peers.catalogue import PEERS
from orcalike.bench.peers.rounds import FULL, QUICK, measure
from orcalike.bench.table import add_options, report

NAMES = list(dict.fromkeys(peer.name for peer in PEERS))

EXAMPLES = """\
examples:
  make bench-peers                                         installs what it can, and the whole table
  python -m orcalike.bench.peers                           the table of what is installed; some minutes
  python -m orcalike.bench.peers --quick                   a look at all rows; the figures mean little
  python -m orcalike.bench.peers --only redis,ray          these only
  python -m orcalike.bench.peers --json peers.json         with all samples
"""


def names(text: str) -> list[str]:
    """What `--only` has; raises argparse's error for a name that is none."""
    chosen = text.split(",")
    for name in chosen:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"no peer {name!r}; there are {', '.join(NAMES)}")
    return chosen


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m orcalike.bench.peers",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser, time_limit=900)
    parser.add_argument(
        "--only",
        type=names,
        default=NAMES,
        metavar="PEER,...",
        help=f"some of {', '.join(NAMES)}",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    options = parse(arguments)
    peers = [peer for peer in PEERS if peer.name in options.only]
    effort = QUICK if options.quick else FULL
    return report("peers", options, lambda: measure(peers, effort))


if __name__ == "__main__":
    sys.exit(main())
