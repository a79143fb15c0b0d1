"""Interleaved rounds: programs that are started once, and asked for figures again and again.

The speed of a machine changes from second to second, so no figure stands alone: what is compared
is measured in interleaved rounds (A B A B), each round gives one ratio, and what counts is the median of these.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Self

OVER_SEQUENCER = ("--sequencer", "witness")
"""Options of `orcalike run` for groups whose writes are ordered by a process of its own."""

ENDS_WITHIN = 5.0
"""Seconds that a program has to end by itself, when its input has ended."""


class BenchError(Exception):
    """A measurement cannot be made."""


class Lacking(BenchError):
    """This machine has not what a measurement needs; others can be made."""


@dataclass(frozen=True)
class Spread:
    """The median of some samples, and the quartiles: half of them lie between."""

    PARTS: ClassVar = ("median", "low", "high")

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Of one sample or more."""
        median = statistics.median(samples)
        if len(samples) < 2:
            return cls(median, median, median)
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(median, low, high)


class Program:
    """A program that answers each line of its input with a line of JSON.

    It gets a session of its own, so that Ctrl-C comes to the harness alone, which ends it.
    """

    def __init__(self, command: Sequence[str | Path]) -> None:
        self.name = " ".join(Path(word).name for word in map(str, command[:3]))
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ask(self, line: object) -> Any:
        """Its answer; raises BenchError if it has ended instead."""
        assert self.process.stdin is not None
        try:
            print(line, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise BenchError(f"{self.name} has ended") from None
        return self.answer(f"when it was asked for {line!r}")

    def answer(self, when: str = "as it started") -> Any:
        """What it says next; raises BenchError, with `when`, if it has ended instead."""
        assert self.process.stdout is not None
        if not (answer := self.process.stdout.readline()):
            raise BenchError(f"{self.name} ended {when}")
        return json.loads(answer)

    def close(self) -> None:
        """End it: gently, and if that takes too long, not."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        for end in (self.process.terminate, self.process.kill):
            try:
                self.process.wait(ENDS_WITHIN)
                return
            except subprocess.TimeoutExpired:
                end()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Its processes.

    def threads(self) -> list[Path]:
        """The folders in /proc of all threads of the program and of what it started."""
        found, pids = [], [self.process.pid]
        while pids:
            with contextlib.suppress(OSError):  # a process may end while it is looked at
                for thread in Path(f"/proc/{pids.pop()}/task").iterdir():
                    found.append(thread)
                    pids += map(int, (thread / "children").read_text().split())
        return found

    def run_on(self, cores: set[int]) -> None:
        """Let all its processes run on these cores only."""
        for thread in self.threads():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)

    def core_seconds(self) -> float:
        """The time that its processes have had a core for, so far."""
        total = 0
        for thread in self.threads():
            with contextlib.suppress(OSError):
                total += int((thread / "schedstat").read_text().split()[0])
        return total / 1e9


def interleave(
    rounds: int, measures: Mapping[str, Callable[[], float]], warm_up: int = 1
) -> dict[str, list[float]]:
    """The samples by name; the first `warm_up` rounds are not among them."""
    samples: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(-warm_up, rounds):
        for name, measure in measures.items():
            sample = measure()
            if number >= 0:
                samples[name].append(sample)
    return samples


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Round by round."""
    return [mine / other for mine, other in zip(ours, theirs, strict=True)]


def require_uvloop() -> None:
    """Raise BenchError if uvloop is missing, which the programs that are measured import."""
    if importlib.util.find_spec("uvloop") is None:
        raise BenchError("it needs the package uvloop: pip install 'orcalike[bench]'")


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise BenchError in the block after so long, and SystemExit for SIGTERM: both clean up."""

    def too_long(number: int, frame: FrameType | None) -> None:
        raise BenchError(f"not done after {seconds} s")

    def ended(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {
        signal.SIGALRM: signal.signal(signal.SIGALRM, too_long),
        signal.SIGTERM: signal.signal(signal.SIGTERM, ended),
    }
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)
