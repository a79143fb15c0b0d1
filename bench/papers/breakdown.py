"""A54: where the time of one write goes, layer by layer, in a group of two (figure 2, table 3).

Probes stand between the layers of the sender and of the sequencer, and say how long each layer has
run; what they take themselves is measured by two in a row, and subtracted. The whole is the delay
without probes; the kernel's part is the same way in C. The rest is what no probe is beside: the
driver, COM on the way up, the caller's side of an invocation, caches that a change of process leaves
cold. On the way of a write are all layers of the sender, and at the sequencer those from TOTAL on: it
delivers to itself when it has sent.
"""

from __future__ import annotations

from contextlib import ExitStack

from orcalike.bench.harness import Program, Spread
from orcalike.bench.papers.groups import Effort, compile_limit, pin, start, start_limit
from orcalike.bench.papers.shapes import Curve, Point, Shape

NUMBERS = ("A54",)
PLAIN = "PACK:XFER:TOTAL:MBRSHIP:COM:unix"
PROBED = "PACK:PROBE:PROBE:XFER:PROBE:TOTAL:PROBE:MBRSHIP:PROBE:COM:unix"
LAYERS = ("PACK", "XFER", "TOTAL", "MBRSHIP", "COM")
AT_SEQUENCER = ("TOTAL", "MBRSHIP", "COM")
PARTS = ("PACK, object", *LAYERS[1:], "kernel, as C", "rest")

Sample = dict[str, dict[str, float]]


def measure(effort: Effort) -> tuple[Shape, ...]:
    """The parts of the delay of a null write in us, pinned to one core."""
    with ExitStack() as stack:
        pingpong = compile_limit(stack)

        def group(text: str) -> Program:
            return start(stack, 2, text, program="stack_member.py", sequencer="rank")

        plain, probed, c = group(PLAIN), group(PROBED), start_limit(stack, pingpong, 1, 0)
        pin([plain, probed, c])
        wholes, kernels, samples = [], [], []
        for _ in range(-1, effort.many_rounds):
            wholes.append(float(plain.ask(f"write {effort.calls}")))
            samples.append(probed.ask(f"layers {effort.calls}"))
            kernels.append(float(c.ask(effort.calls)))
    return (_shape(wholes[1:], kernels[1:], samples[1:]),)


def _shape(wholes: list[float], kernels: list[float], samples: list[Sample]) -> Shape:
    sender = _layers(samples, "sender", LAYERS)
    sequencer = _layers(samples, "sequencer", AT_SEQUENCER)
    both = [
        [a + b for a, b in zip(ours, theirs, strict=True)]
        for ours, theirs in zip(sender, sequencer, strict=True)
    ]
    rest = [
        max(0.0, whole - kernel - sum(part[number] for part in both))
        for number, (whole, kernel) in enumerate(zip(wholes, kernels, strict=True))
    ]
    whole = Spread.of(wholes).median * 1e6
    return Shape(
        "A54",
        "where the time of one write goes, group of 2",
        "part of the way",
        "us",
        (_curve("write", [*both, kernels, rest]),),
        (_curve("of it, sender's layers", sender), _curve("of it, sequencer's layers", sequencer)),
        (Curve.exactly("user, group, FLIP, Ethernet", {0: 514, 2: 740, 4: 570, 5: 916}),),
        "us",
        (
            f"the whole write takes {whole:.1f} us, the original's send 2740 us",
            (
                "the original's group protocol stands at TOTAL, FLIP at COM, Ethernet at the kernel; "
                "its user part is mostly the change from the receiving thread to the sending one"
            ),
            "probes take longer than most layers: read the parts to some 0.2 us",
        ),
        PARTS,
    )


def _layers(samples: list[Sample], side: str, names: tuple[str, ...]) -> list[list[float]]:
    """For each layer, its seconds in each round; 0 if it is not on the way."""
    return [
        [sample[side].get(name, 0.0) if name in names else 0.0 for sample in samples]
        for name in LAYERS
    ]


def _curve(name: str, parts: list[list[float]]) -> Curve:
    points = []
    for x, part in enumerate(parts):
        spread = Spread.of([seconds * 1e6 for seconds in part])
        points.append(Point(x, spread.median, spread.low, spread.high))
    return Curve(name, tuple(points))
