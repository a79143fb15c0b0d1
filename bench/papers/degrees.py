"""A61: the delay of a write of degree r in a group of n = r + 1 members (figure 7).

It stands beside a write of degree 0 in the same group: what is left is the cost of the holders'
acknowledgements. The sequencer is one more member, and holds the write too.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, pin, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("A61",)


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The delay in us over r, pinned to one core."""
    with ExitStack() as stack:
        groups = {n - 1: start(stack, n, f"--resilience={n - 1}") for n in effort.members}
        pin(list(groups.values()))
        measures = {
            (kind, r): asking(group, f"{kind} {effort.calls}")
            for r, group in groups.items()
            for kind in ("sure", "write")
        }
        samples = interleave_keys(effort.many_rounds, measures)
    sure = Curve.of("degree r", of_kind(samples, "sure"), 1e6)
    none = Curve.of("degree 0, the same group", of_kind(samples, "write"), 1e6)
    extra = {mine.x: mine.y - other.y for mine, other in zip(sure.points, none.points, strict=True)}
    most = max(extra)
    return (
        Shape(
            "A61",
            "delay over the resilience degree, n = r + 1",
            "r",
            "us",
            (sure,),
            (none,),
            (Curve.exactly("0 bytes", {1: 4.2, 15: 12.9}),),
            "ms",
            (
                (
                    "original: each acknowledgement adds about 600 us, or 22 % of the delay with r = 0; "
                    f"here {extra[most] / most:.1f} us each with r = {most:g}"
                ),
            ),
        ),
    )
