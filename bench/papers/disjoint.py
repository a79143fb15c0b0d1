"""A60: several groups at once, with no member in common, in each of which all send (figure 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from orcalike.bench.harness import Program
from orcalike.bench.papers.groups import Effort, interleave_keys, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("A60",)
GROUPS = {2: 5, 4: 4, 8: 2}
"""How many groups of each size; the original had machines for 15, 7 and 3."""


def measure(effort: Effort) -> tuple[Shape, ...]:
    """Messages of 0 bytes a second, of all groups together; each size of group has its round."""
    sizes = {size: count for size, count in GROUPS.items() if size <= max(effort.members)}
    curves = [_curve(effort, size, count) for size, count in sizes.items()]
    return (
        Shape(
            "A60",
            "disjoint groups in parallel, all members send",
            "groups",
            "messages/s",
            tuple(curves),
            (),
            (Curve.exactly("one group at most, 5 groups of 2", {1: 815, 5: 3175}),),
            "messages/s",
            (
                (
                    "original: one group gives at most 815/s, five of 2 members 3175/s, then the "
                    "Ethernet collides; here the groups share the cores, which a group whose members "
                    "wait for their messages does not fill"
                ),
            ),
        ),
    )


def _curve(effort: Effort, size: int, count: int) -> Curve:
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(count))  # left last: it waits for answers
        groups = [start(stack, size) for _ in range(count)]
        calls = max(2, 4 * effort.calls // size)
        measures = {k: _together(pool, groups[:k], size, calls) for k in range(1, count + 1)}
        samples = interleave_keys(effort.rounds, measures)
    return Curve.of(f"groups of {size}", {float(k): taken for k, taken in samples.items()})


def _together(
    pool: ThreadPoolExecutor, groups: Sequence[Program], size: int, calls: int
) -> Callable[[], float]:
    """A round: the messages of all groups by the time of the slowest, all of them asked at once."""
    order = f"sends:0:{size} {calls}"

    def sample() -> float:
        seconds = pool.map(lambda group: float(group.ask(order)), groups)
        return len(groups) / max(seconds)

    return sample
