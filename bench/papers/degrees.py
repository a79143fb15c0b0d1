"""A61, A62: the delay of a write of degree r in a group of n = r + 1 members (figures 7 and 8).

It stands beside a write of degree 0 in the same group: what is left is the cost of the holders'
acknowledgements. The sequencer is one more member, and holds the write too.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, pin, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("A61", "A62")


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The delay in us over r, pinned to one core; A62 is that of larger arguments."""
    with ExitStack() as stack:
        groups = {n - 1: start(stack, n, f"--resilience={n - 1}") for n in effort.members}
        pin(list(groups.values()))
        measures = {
            ((kind, size), r): asking(group, f"{kind}:{size} {effort.calls}")
            for r, group in groups.items()
            for size in effort.sizes
            for kind in ("sure", "write")
        }
        samples = interleave_keys(effort.many_rounds, measures)
    sure, none = (
        {
            size: Curve.of(f"{name}, {size} bytes", of_kind(samples, (kind, size)), 1e6)
            for size in effort.sizes
        }
        for kind, name in (("sure", "degree r"), ("write", "degree 0, the same group"))
    )
    larger = [size for size in effort.sizes if size]
    return (
        Shape(
            "A61",
            "delay over the resilience degree, n = r + 1",
            "r",
            "us",
            (sure[0],),
            (none[0],),
            (Curve.exactly("0 bytes", {1: 4.2, 15: 12.9}),),
            "ms",
            (
                (
                    "original: each acknowledgement adds about 600 us, or 22 % of the delay with r = 0; "
                    f"here {each(sure[0], none[0])}"
                ),
            ),
        ),
        Shape(
            "A62",
            "delay over the resilience degree, larger arguments",
            "r",
            "us",
            tuple(sure[size] for size in larger),
            tuple(none[size] for size in larger),
            notes=(
                "original: its machines missed packets with large messages and high degrees; no figures",
                *(f"{size} bytes: {each(sure[size], none[size])}" for size in larger),
            ),
        ),
    )


def each(sure: Curve, none: Curve) -> str:
    """What each acknowledgement adds, by the largest group."""
    mine, other = sure.points[-1], none.points[-1]
    return f"{(mine.y - other.y) / mine.x:.1f} us each with r = {mine.x:g}"
