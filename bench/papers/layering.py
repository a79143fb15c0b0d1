"""H86: the cost of a layer: one stacked once and ten times, and the difference in the one-way delay.

The original stacked its fragmentation layer. Here it is PACK, which is compiled and may stand in a
stack more than once, and two layers in Python: NULL, which does nothing, and HEADER.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, pin, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("H86",)
REST = "XFER:TOTAL:MBRSHIP:COM:unix"
KINDS = {"PACK": "", "NULL": "PACK:", "HEADER": "PACK:"}
"""What is stacked, and what stands above it."""


def measure(effort: Effort) -> tuple[Shape, ...]:
    """Half the delay of a null write in us, over the times that a layer is there; on one core."""
    times = (1, 10) if effort.rounds < 2 else (1, 4, 7, 10)
    with ExitStack() as stack:
        groups = {
            (kind, k): start(
                stack,
                2,
                f"{above}{f'{kind}:' * k}{REST}",
                program="stack_member.py",
                sequencer="rank",
            )
            for kind, above in KINDS.items()
            for k in times
        }
        pin(list(groups.values()))
        samples = interleave_keys(
            effort.many_rounds,
            {key: asking(it, f"write {effort.calls}") for key, it in groups.items()},
        )
    curves = {kind: Curve.of(kind, of_kind(samples, kind), 1e6 / 2) for kind in KINDS}
    ends = {kind: curve.fitted("", (1, 10)).points for kind, curve in curves.items()}
    costs = {kind: (last.y - first.y) / 9 for kind, (first, last) in ends.items()}
    each = ", ".join(f"{kind} {cost:.2f} us" for kind, cost in costs.items())
    return (
        Shape(
            "H86",
            "a layer stacked once and ten times",
            "times that the layer is in the stack",
            "us one way",
            tuple(curves.values()),
            notes=(
                (
                    "original: ten fragmentation layers took 50 us more than one, with one-way delays "
                    f"of 1.2 ms and more: 5.6 us each; here each takes {each}"
                ),
            ),
        ),
    )
