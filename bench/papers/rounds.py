"""H91, H94: rounds in which each of n members casts k messages of size s and waits for k(n - 1).

H91 is the time of a round for the three k and s that the original names: 1 and 1 for latency, 1 and
4 KB for bandwidth, 25 and 1 for throughput. H94 is the throughput over k, with a total order and
without one (figures 4 and 5).
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from orcalike.bench.harness import Program
from orcalike.bench.papers.groups import Effort, asking, interleave_keys, of_kind, pin, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("H91", "H94")
ORDERED = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
LOOSE = "LOOSE:MBRSHIP:COM:unix"
LARGEST = 8
"""Members; the original went to 5."""
SHAPES = {"latency": (1, 1), "bandwidth": (1, 4096), "throughput": (25, 1)}
"""k and s."""
PER_ROUND = (1, 5, 10, 25, 50, 100)


def start_rounds(stack: ExitStack, members: int, layers: str) -> Program:
    """A group with a stack of layers, for rounds; rank 0 is its sequencer if there is one."""
    return start(stack, members, layers, program="rounds_member.py", sequencer="rank")


def measure(effort: Effort) -> tuple[Shape, ...]:
    """H91 in us, pinned to one core; H94 in messages a second, on all cores."""
    members = [n for n in effort.members if n <= LARGEST]
    with ExitStack() as stack:
        groups = {
            (kind, n): start_rounds(stack, n, layers)
            for kind, layers in (("TOTAL", ORDERED), ("FIFO", LOOSE))
            for n in members
        }
        pin(list(groups.values()))
        latency = _times(effort, {n: groups["TOTAL", n] for n in members})
        for group in groups.values():
            group.run_on(os.sched_getaffinity(0))
        throughput = _throughput(effort, groups)
    return latency, throughput


def _times(effort: Effort, groups: dict[int, Program]) -> Shape:
    measures = {
        (name, n): asking(group, f"all:{k}:{size} {max(2, effort.calls // k)}")
        for n, group in groups.items()
        for name, (k, size) in SHAPES.items()
    }
    samples = interleave_keys(effort.rounds, measures)
    curves = {
        name: Curve.of(f"k = {k}, s = {size}: {name}", of_kind(samples, name), 1e6)
        for name, (k, size) in SHAPES.items()
    }
    size, k = SHAPES["bandwidth"][1], SHAPES["throughput"][0]
    bandwidth = max(p.x * size / p.y for p in curves["bandwidth"].points)
    rate = max(p.x * k / p.y for p in curves["throughput"].points) * 1e6
    return Shape(
        "H91",
        "rounds: each member casts k messages of s bytes and waits for all others'",
        "members",
        "us a round",
        tuple(curves.values()),
        (),
        (Curve.exactly("one-way latency", {2: 1.2}),),
        "ms",
        (
            f"bandwidth: here {bandwidth:.1f} MB/s of all members, the original's Ethernet 1.0 MB/s",
            f"throughput: here {rate:,.0f} messages/s cast, originally 7500, and 75 000 where packed",
        ),
    )


def _throughput(effort: Effort, groups: dict[tuple[str, int], Program]) -> Shape:
    ks = PER_ROUND if effort.rounds > 1 else PER_ROUND[:2]
    measures = {
        ((kind, n), k): asking(group, f"all:{k}:1 {max(2, 2 * effort.calls // (k + n))}")
        for (kind, n), group in groups.items()
        for k in ks
    }
    samples = interleave_keys(effort.rounds, measures)

    def curve(kind: str, n: int) -> Curve:
        times = of_kind(samples, (kind, n))
        rates = {k: [k * n / seconds for seconds in taken] for k, taken in times.items()}
        return Curve.of(f"{kind}, {n} members", rates)

    curves = {key: curve(*key) for key in groups}
    return Shape(
        "H94",
        "throughput over messages per round and members",
        "messages per round of each member",
        "messages/s, 1 byte",
        tuple(it for (kind, _), it in curves.items() if kind == "TOTAL"),
        tuple(it for (kind, _), it in curves.items() if kind == "FIFO"),
        notes=(
            (
                "original: FIFO is the same for each k, and falls slowly with the members; TOTAL gets "
                "better with k and with the members, to 7500/s, since more is packed"
            ),
        ),
    )
