"""The bars of docs/testing.md, measured: `make campaign`, `make campaign TIER=2`.

    python -m tests.campaign --only G7,G12 --times 0.2

Prints each figure as it comes and all of them as a table at the end. Exit code 1 if one falls
short of its bar.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tests.campaign import (
    busy,
    hosts,
    outsiders,
    partitions,
    processes,
    ring,
    runtimes,
    signalled,
    simulated,
    starts,
    transfer,
)
from tests.campaign.bars import Bar, Figure, Scale, table
from tests.campaign.mutants import campaign as mutants

RECORD = Path("build/campaigns.jsonl")
"""What each campaign came to, a line each (G28)."""
FLAKY = 1 / 200

BARS = [
    *simulated.BARS,
    *runtimes.BARS,
    *processes.BARS,
    *partitions.BARS,
    *hosts.BARS,
    *starts.BARS,
    *transfer.BARS,
    *mutants.BARS,
    *busy.BARS,
    *outsiders.BARS,
    *signalled.BARS,
    *ring.BARS,
]


def measured(bar: Bar, scale: Scale) -> list[Figure]:
    """Measure one bar; what cannot be measured is not met."""
    try:
        return bar.measure(scale)
    except Exception as error:  # noqa: BLE001 the other bars are to be measured all the same
        return [Figure(goal, f"{type(error).__name__}: {error}", False) for goal in bar.goals]


def record(figures: list[Figure], scale: Scale) -> Figure:
    """G28: keep what came of it, and count the campaigns in which something was broken."""
    RECORD.parent.mkdir(exist_ok=True)
    line = {
        "when": time.strftime("%Y-%m-%d %H:%M"),
        "tier": scale.tier,
        "short": [each.goal for each in figures if not each.met],
        "figures": {each.goal: {"figure": each.figure, **each.figures} for each in figures},
    }
    with RECORD.open("a") as file:
        file.write(json.dumps(line) + "\n")
    runs = [json.loads(each) for each in RECORD.read_text().splitlines()]
    red = sum(bool(each["short"]) for each in runs)
    return Figure("G28", f"{red} of {len(runs)} campaigns short of a bar", red <= FLAKY * len(runs))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests.campaign", description=__doc__)
    parser.add_argument("--only", default="", help="these bars, as G7,G12")
    parser.add_argument("--tier", type=int, default=1, choices=(1, 2))
    parser.add_argument("--times", type=float, default=1.0, help="so much of everything")
    return parser.parse_args()


def main() -> None:
    """Measure, and say what came of it."""
    options = arguments()
    scale = Scale(options.times, options.tier)
    only = set(filter(None, options.only.upper().split(",")))
    figures: list[Figure] = []
    must = {"G28": "<= 1 in 200 campaigns"}
    start = time.monotonic()
    for bar in BARS:
        must |= bar.must
        if only and not only & set(bar.goals):
            continue
        for figure in measured(bar, scale):
            figures.append(figure)
            seconds = time.monotonic() - start
            print(f"{seconds:6.0f} s  {figure.goal:4} {figure.figure}", flush=True)
            for note in figure.notes[:10]:
                print(f"          {note}", flush=True)
    figures.append(record(figures, scale))
    figures.sort(key=lambda figure: int(figure.goal[1:]))
    rows = [
        (each.goal, must[each.goal], each.figure, "met" if each.met else "SHORT")
        for each in figures
    ]
    print("\n" + table(rows))
    sys.exit(not all(figure.met for figure in figures))


if __name__ == "__main__":
    main()
