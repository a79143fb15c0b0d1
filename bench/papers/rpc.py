"""A53: a send to a group of two beside a remote procedure call, both from Python.

The call is a request of so many bytes through `multiprocessing.connection`, on a Unix socket, and
an empty reply. The way there and back in C has as many bytes in both directions.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack

from orcalike.bench.harness import Program
from orcalike.bench.papers.groups import (
    HERE,
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

NUMBERS = ("A53",)


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The delay in us over the size of the message, pinned to one core."""
    with ExitStack() as stack:
        pingpong = compile_limit(stack)
        group = start(stack, 2)
        call = stack.enter_context(Program([sys.executable, HERE / "rpc_peer.py"]))
        limits = {size: start_limit(stack, pingpong, 1, size) for size in effort.sizes}
        pin([group, call, *limits.values()])
        count = effort.calls
        measures = {("write", 0): asking(group, f"write {count}")}
        for size in effort.sizes:
            measures["send", size] = asking(group, f"send:{size} {count}")
            measures["rpc", size] = asking(call, f"{size} {count}")
            measures["c", size] = asking(limits[size], str(count))
        samples = interleave_keys(effort.many_rounds, measures)

    def curve(name: str, kind: str) -> Curve:
        return Curve.of(name, of_kind(samples, kind), 1e6)

    return (
        Shape(
            "A53",
            "send to a group of 2 beside a remote procedure call",
            "bytes",
            "us",
            (curve("send to a group of 2", "send"), curve("null write, group of 2", "write")),
            (curve("RPC, multiprocessing.connection", "rpc"), curve("RPC, C", "c")),
            (Curve.exactly("group of 2", {0: 2.7}), Curve.exactly("RPC", {0: 2.8})),
            "ms",
            ("a send also wakes the thread that receives, and the other member",),
        ),
    )
