"""D23: the latency of an invocation over group size: a null update that its caller waits for.

The sender is not on the sequencer's machine in the original, and not its process here.
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

NUMBERS = ("D23",)


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The latency in us, pinned to one core."""
    with ExitStack() as stack:
        pingpong = compile_limit(stack)
        groups = {n: start(stack, n) for n in effort.members}
        limits = {n: start_limit(stack, pingpong, n, 0) for n in effort.members}
        pin([*groups.values(), *limits.values()])
        measures = {("write", n): asking(it, f"write {effort.calls}") for n, it in groups.items()}
        measures |= {("c", n): asking(limit, str(effort.calls)) for n, limit in limits.items()}
        samples = interleave_keys(effort.many_rounds, measures)
    return (
        Shape(
            "D23",
            "latency of an invocation: a null update",
            "members",
            "us",
            (Curve.of("null write that waits", of_kind(samples, "write"), 1e6),),
            (Curve.of("C", of_kind(samples, "c"), 1e6),),
            (Curve.exactly("multicast of a null message", {2: 538}),),
            "us",
            ("the original multicast in hardware; here the sequencer sends to each member",),
        ),
    )
