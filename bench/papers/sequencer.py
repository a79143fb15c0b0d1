"""A57: what bounds the throughput: the core time that the sequencer has for one message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from orcalike.bench.harness import BenchError, Program
from orcalike.bench.papers.groups import Effort, interleave_keys, of_kind, start
from orcalike.bench.papers.shapes import Curve, Shape

NUMBERS = ("A57",)


def witness_of(program: Program) -> list[Path]:
    """The folders in /proc of the threads of a group's sequencer."""
    found = [
        thread
        for thread in program.threads()
        if b"orcalike.launcher.witness" in (thread / "cmdline").read_bytes()
    ]
    if not found:
        raise BenchError("the group has no witness")
    return found


def core_seconds(threads: list[Path]) -> float:
    """The time that they have had a core for."""
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def measure(effort: Effort) -> tuple[Shape, ...]:
    """Core us of the sequencer for each message, over its size, all members sending."""
    with ExitStack() as stack:
        groups = {n: start(stack, n) for n in effort.members}
        measures = {
            (n, size): spent(group, n, size, max(2, 4 * effort.calls // n))
            for n, group in groups.items()
            for size in effort.sizes
        }
        samples = interleave_keys(effort.rounds, measures)
    curves = tuple(Curve.of(f"{n} members", of_kind(samples, n), 1e6) for n in effort.members)
    first = curves[0].points[0].y
    return (
        Shape(
            "A57",
            "what the sequencer spends on a message",
            "bytes",
            "core us",
            curves,
            (),
            (Curve.exactly("0 bytes", {0: 800}),),
            "us",
            (
                (
                    "original: almost 800 us, which bounds it at 1250 messages/s; here "
                    f"{first:.1f} us with {effort.members[0]} members, or {1e6 / first:,.0f} messages/s"
                ),
                (
                    "it grows with the members, since there is no multicast: a send for each; and "
                    "falls with the senders, where what several have sent comes together"
                ),
            ),
        ),
    )


def spent(group: Program, members: int, size: int, count: int) -> Callable[[], float]:
    """A round: the sequencer's core seconds for one message."""
    threads = witness_of(group)

    def sample() -> float:
        before = core_seconds(threads)
        group.ask(f"sends:{size}:{members} {count}")
        return (core_seconds(threads) - before) / (members * count)

    return sample
