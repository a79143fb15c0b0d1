"""A51, A52: the delay of a send over group size and message size (PB method, r = 0; figure 1).

One member sends, and waits each time until its message is delivered to itself; all members receive
all the time, each by a thread of its own. The sequencer is a process that does nothing else.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import (
    Effort,
    asking,
    compile_limit,
    interleave_keys,
    of_kind,
    pin,
    start,
    start_limit,
)
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("A51", "A52")
MANY = 100
"""The members that the paper's authors had to extrapolate to, too."""


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The delay in us, pinned to one core; A52 is the line through that of 0 bytes."""
    with ExitStack() as stack:
        pingpong = compile_limit(stack)
        groups = {n: start(stack, n) for n in effort.members}
        limits = {n: start_limit(stack, pingpong, n, 0) for n in effort.members}
        pin([*groups.values(), *limits.values()])
        measures = {
            (size, n): asking(group, f"send:{size} {effort.calls}")
            for n, group in groups.items()
            for size in effort.sizes
        }
        measures |= {(-1, n): asking(limit, str(effort.calls)) for n, limit in limits.items()}
        samples = interleave_keys(effort.rounds, measures)
    curves = {size: Curve.of(f"{size} bytes", of_kind(samples, size), 1e6) for size in effort.sizes}
    c = Curve.of("C, 0 bytes", of_kind(samples, -1), 1e6)
    zero = curves[0]
    ends = (min(effort.members), MANY)
    return (
        Shape(
            "A51",
            "delay of one sender, PB, r = 0",
            "members",
            "us",
            tuple(curves.values()),
            (c,),
            (
                Curve.exactly("0 bytes", {2: 2.7, 30: 2.8}),
                Curve.exactly("8000 bytes", {2: 22.7}),
            ),
            "ms",
            (
                (
                    "the original multicast in hardware, to machines that worked side by side; here the "
                    "sequencer sends to each member, and all share one core, as those of C do"
                ),
            ),
        ),
        Shape(
            "A52",
            "delay of one sender, 0 bytes, as far as 100 members",
            "members",
            "us",
            (zero, zero.fitted("line through the points", ends)),
            (c, c.fitted("line through those of C", ends)),
            (Curve.exactly("0 bytes, the last one extrapolated", {2: 2.7, 30: 2.8, 100: 3.2}),),
            "ms",
        ),
    )
