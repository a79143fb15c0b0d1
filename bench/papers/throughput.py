"""A56: the throughput when all members send, each one message at a time (PB, r = 0; figure 4)."""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("A56",)


def measure(effort: Effort) -> tuple[Shape, ...]:
    """Messages a second of all members together, on all cores."""
    with ExitStack() as stack:
        groups = {n: start(stack, n) for n in effort.members}
        measures = {}
        for n, group in groups.items():
            count = max(2, 4 * effort.calls // n)
            for size in effort.sizes:
                measures[f"{size} bytes", n] = asking(group, f"sends:{size}:{n} {count}")
            measures["null writes that wait", n] = asking(group, f"writes:{n} {count}")
            measures["null writes that do not", n] = asking(group, f"posts:{n} {effort.posts // n}")
        samples = interleave_keys(effort.rounds, measures)
    curves = {
        kind: Curve.of(kind, {x: [1 / s for s in taken] for x, taken in of_kind(samples, kind).items()})
        for kind in dict.fromkeys(kind for kind, _ in measures)
    }  # fmt: skip
    *sends, waits, posts = curves.values()
    return (
        Shape(
            "A56",
            "throughput, all members send, PB, r = 0",
            "members, all of which send",
            "messages/s",
            tuple(sends),
            (waits, posts),
            notes=(
                (
                    "original: at most 815 messages/s of 0 bytes; for larger ones the less the more "
                    "there is to copy, until receive buffers overflowed (4 KB, 2 KB with over 16 members)"
                ),
                "here all members share the machine's cores: with each there is more to be done",
            ),
        ),
    )
