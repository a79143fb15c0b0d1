"""Measures writes that wait on all cores, over several starts.

An idle core that must be woken first takes longer than the whole way, sometimes, and how often that
is changes from start to start, not from round to round. So each sample is a group, and a ping-pong
in C, that are started anew, and no bar is set.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orcalike.bench.harness import OVER_SEQUENCER, Program, interleave
from orcalike.bench.pingpong import FRAME, compiled
from orcalike.bench.table import Row, compare, run_script, scaled

HERE = Path(__file__).parent
MEMBERS = 3

EXAMPLES = """\
examples:
  python -m orcalike.bench.unpinned             some twenty seconds
  python -m orcalike.bench.unpinned --quick     a look at the row; the figures mean little
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    starts: int
    waits: int


FULL = Effort(starts=9, waits=2000)
QUICK = Effort(starts=1, waits=100)


def started(command: Sequence[str | Path], first: object, order: object) -> float:
    """Seconds of one round trip in a program of its own; the first ones do not count."""
    with Program(command) as program:
        program.ask(first)
        return float(program.ask(order))


def measure(quick: bool) -> list[Row]:
    """The row. Raises Lacking without a compiler."""
    effort = QUICK if quick else FULL
    run = [sys.executable, "-m", "orcalike", "run", "--quiet", "--no-prefix", *OVER_SEQUENCER]
    member = [*run, "-n", str(MEMBERS), str(HERE / "member.py")]
    with tempfile.TemporaryDirectory() as folder:
        pingpong: list[str | Path] = [compiled(Path(folder)), str(MEMBERS), str(FRAME)]
        count = effort.waits
        samples = interleave(
            effort.starts,
            {
                "ours": lambda: started(member, "wait 100", f"wait {count}"),
                "c": lambda: started(pingpong, 100, count),
            },
            warm_up=0,
        )
    ours, theirs = (scaled(samples[name], 1e6) for name in ("ours", "c"))
    return [compare("write that waits, unpinned", MEMBERS, "us", ours, "C", theirs)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; returns the exit code."""
    texts = (__doc__, EXAMPLES)
    return run_script("unpinned", texts, measure, time_limit=120, arguments=arguments)


if __name__ == "__main__":
    sys.exit(main())
