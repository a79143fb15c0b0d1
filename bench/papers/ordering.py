"""H93: what a total order adds to the one-way latency (figure 4, below).

In each round all members cast one message of a byte and wait for those of the others: with a total
order, and with the order of each sender alone. With one sender at a time the next member casts when
it has the message of the one before.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, pin
from orcalike.bench.papers.rounds import LARGEST, LOOSE, start_rounds
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("H93",)
ORDERED = "XFER:TOTAL:MBRSHIP:COM:unix"
"""Without PACK, which has no counterpart on the other side."""


def measure(effort: Effort) -> tuple[Shape, ...]:
    """One-way latency in us over the members, pinned to one core."""
    members = [n for n in effort.members if n <= LARGEST]
    kinds = {
        "TOTAL, all send": (ORDERED, "all:1:1"),
        "TOTAL, one sender": (ORDERED, "one:1:1"),
        "FIFO, all send": (LOOSE, "all:1:1"),
        "FIFO, one sender": (LOOSE, "one:1:1"),
    }
    with ExitStack() as stack:
        groups = {
            (layers, n): start_rounds(stack, n, layers)
            for layers in (ORDERED, LOOSE)
            for n in members
        }
        pin(list(groups.values()))
        measures = {
            (name, n): asking(groups[layers, n], f"{kind} {effort.calls}")
            for name, (layers, kind) in kinds.items()
            for n in members
        }
        samples = interleave_keys(effort.rounds, measures)
    curves = {name: Curve.of(name, of_kind(samples, name), 1e6) for name in kinds}
    total, fifo = curves["TOTAL, all send"], curves["FIFO, all send"]
    each = ", ".join(
        f"{mine.y / other.y:.1f}x with {mine.x:g}"
        for mine, other in zip(total.points, fifo.points, strict=True)
    )
    return (
        Shape(
            "H93",
            "one-way latency: total order beside FIFO",
            "members",
            "us",
            tuple(it for name, it in curves.items() if name.startswith("TOTAL")),
            tuple(it for name, it in curves.items() if name.startswith("FIFO")),
            notes=(
                (
                    "original: 1.5 ms FIFO, 6.7 ms TOTAL (4.5x), 1.6 ms TOTAL with one sender (1.1x); "
                    f"here TOTAL takes, when all send, {each} members"
                ),
            ),
        ),
    )
