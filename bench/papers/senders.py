"""D24: what the sequencer orders a second, over the number of senders; it sends nothing itself.

As in the original each sender waits for its invocation before it makes the next one; beside that,
writes that do not wait.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("D24",)
MEMBERS = 8
"""At most; the original's group had as many as the laboratory had machines."""


def measure(effort: Effort) -> tuple[Shape, ...]:
    """Invocations a second of all senders together, on all cores."""
    members = min(MEMBERS, max(effort.members))
    with ExitStack() as stack:
        group = start(stack, members)
        measures = {
            (kind, senders): asking(group, f"{kind}:{senders} {calls // senders}")
            for senders in range(1, members + 1)
            for kind, calls in (("writes", 8 * effort.calls), ("posts", effort.posts))
        }
        samples = interleave_keys(effort.rounds, measures)
    rates = {key: [1 / seconds for seconds in taken] for key, taken in samples.items()}
    return (
        Shape(
            "D24",
            f"sequencer throughput over senders, group of {members}",
            "members that send",
            "invocations/s",
            (Curve.of("writes that wait", of_kind(rates, "writes")),),
            (Curve.of("writes that do not wait", of_kind(rates, "posts")),),
            (Curve.exactly("1/538 us, and where it levels off", {1: 1 / 538e-6, members: 4000}),),
            "invocations/s",
            ("original: from some senders on about 4000/s, 90 % of what the hardware could do",),
        ),
    )
