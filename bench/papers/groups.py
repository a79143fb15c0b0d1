"""The groups that the experiments measure, and how much of everything they measure."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orcalike.bench.harness import Program, interleave
from orcalike.bench.pingpong import compiled

HERE = Path(__file__).parent
HEADERS = 73
"""Bytes that a frame adds to a message, about; so the limits in C are given as many more."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Effort:
    """How much is measured; each round is short, since the machine's speed changes all the time."""

    rounds: int
    """Of what takes long; waiting calls in small groups get `many_rounds`."""
    calls: int
    """Of one member, one after the other, in one round."""
    posts: int
    """Of one member that does not wait, in one round."""
    members: tuple[int, ...]
    """The sizes of group."""
    sizes: tuple[int, ...] = (0, 1024, 4096, 8000)
    """Bytes of a message, as in the originals."""

    @property
    def many_rounds(self) -> int:
        """Of experiments whose rounds take some ms."""
        return 3 * self.rounds if self.rounds > 1 else 1


FULL = Effort(rounds=7, calls=200, posts=20_000, members=(2, 4, 8, 16))
QUICK = Effort(rounds=1, calls=5, posts=100, members=(2, 3), sizes=(0, 1024))


def start(
    stack: ExitStack,
    members: int,
    *arguments: str,
    program: str = "member.py",
    sequencer: str = "witness",
) -> Program:
    """A group that runs a program of this folder; it is up when this returns.

    By default the sequencer is a process of its own, so that no sender is beside it, as in the
    originals; "rank" makes rank 0 the sequencer.
    """
    command = [sys.executable, "-P", "-m", "orcalike", "run", "--quiet", "--no-prefix"]
    command += ["--sequencer", sequencer, "-n", str(members), str(HERE / program), *arguments]
    started = stack.enter_context(Program(command))
    started.ask("hello 0")
    return started


def compile_limit(stack: ExitStack) -> Path:
    """The limit in C, in a temporary folder; raises BenchError if there is no C compiler."""
    return compiled(Path(stack.enter_context(tempfile.TemporaryDirectory())))


def start_limit(stack: ExitStack, pingpong: Path, members: int, size: int) -> Program:
    """The same way in C: a message of `size` bytes and headers to a sequencer, and to all."""
    program = stack.enter_context(Program([pingpong, str(members), str(size + HEADERS)]))
    program.ask(1)  # all its processes are there
    return program


def pin(programs: Sequence[Program]) -> None:
    """Let all run on one core: an idle core that must be woken makes every delay another one."""
    for program in programs:
        program.run_on({max(os.sched_getaffinity(0))})


def interleave_keys(
    rounds: int, measures: Mapping[Key, Callable[[], float]]
) -> dict[Key, list[float]]:
    """`interleave`, with keys of any kind."""
    named = {str(number): measure for number, measure in enumerate(measures.values())}
    samples = interleave(rounds, named)
    return dict(zip(measures, samples.values(), strict=True))


def asking(program: Program, order: str) -> Callable[[], float]:
    """A round: the seconds that a program answers."""
    return lambda: float(program.ask(order))


def of_kind(samples: Mapping[tuple[Key, int], list[float]], kind: Key) -> dict[float, list[float]]:
    """The samples of one curve, by x."""
    return {x: taken for (name, x), taken in samples.items() if name == kind}
