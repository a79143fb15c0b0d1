"""H87: the one-way latency past the layers, beside that through them.

The original has its layer FAST on top of four others. Here a write goes past XFER and RING where the order is in shared
memory, and through them with `PACK(fast=0)`.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, pin, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("H87",)
KINDS = {
    "past the layers": "PACK:XFER:RING:MBRSHIP:COM:unix",
    "through them": "PACK(fast=0):XFER:RING:MBRSHIP:COM:unix",
}
"""The stacks."""


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The delay of a null write at its sender in us, in a group of two, on one core."""
    with ExitStack() as stack:
        groups = {
            (kind, 2): start(stack, 2, layers, program="stack_member.py", sequencer="rank")
            for kind, layers in KINDS.items()
        }
        pin(list(groups.values()))
        samples = interleave_keys(
            effort.many_rounds,
            {key: asking(it, f"write {10 * effort.calls}") for key, it in groups.items()},
        )
    past, through = (Curve.of(kind, of_kind(samples, kind), 1e6) for kind in KINDS)
    ratio = past.points[0].y / through.points[0].y
    return (
        Shape(
            "H87",
            "one-way latency past the layers",
            "members",
            "us",
            (past,),
            (through,),
            notes=(
                (
                    "original: 1.2 ms over FAST:MBRSHIP:FRAG:NAK:COM:udp, and no figure without FAST; "
                    f"here a write takes {ratio:.2f} times what it takes through the layers"
                ),
            ),
        ),
    )
