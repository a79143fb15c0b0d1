"""What the programs of the peers share: lines in, seconds out; other members; servers of their own.

A line of the input is `KIND COUNT`, with a kind of these, and the answer is the seconds of one of them:

- `wait`: one member writes an int, and waits each time until it is done;
- `burst`: all members write COUNT ints each at once, in the peer's own way of not waiting for each;
- `read`: one member reads.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import repeat
from multiprocessing.connection import Connection
from pathlib import Path
from timeit import Timer
from types import FrameType
from typing import Any

MEMBERS = 3
"""As many as orcalike has beside them."""

STARTS_WITHIN = 30.0
"""Seconds that a peer has until it works."""

SET_PDEATHSIG = 1

Measures = Mapping[str, Callable[[int], float]]
"""By kind: from a count to the seconds of one operation."""

Span = tuple[float, float]
"""When it began and ended; the clock is the same in all processes."""


class Counter:
    """What is shared, if a peer shares objects of a class."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int) -> None:
        """A write of one integer."""
        self.value += amount

    def get(self) -> int:
        """A read."""
        return self.value


def serve(opened: AbstractContextManager[Measures]) -> None:
    """Answer the lines of the input, until it ends.

    Standard output is for answers only: what libraries print there goes to standard error.
    """
    end_cleanly()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with opened as measures:
        for line in sys.stdin:
            kind, count = line.split()
            print(repr(measures[kind](int(count))), file=answers, flush=True)


def end_cleanly() -> None:
    """Let SIGTERM be an exception, so that servers and folders are cleaned up."""

    def ended(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, ended)


# Clocks.


def each(call: Callable[[], object], count: int) -> float:
    """Seconds of one call that waits for an answer."""
    began = time.monotonic()
    for _ in repeat(None, count):
        call()
    return (time.monotonic() - began) / count


def local(statement: str, count: int, **names: object) -> float:
    """Seconds of a statement that no message is sent for, without the loop around it."""
    clock = time.thread_time  # what others do meanwhile does not count
    empty = min(Timer("pass", timer=clock).repeat(3, count))
    return (Timer(statement, timer=clock, globals=names).timeit(count) - empty) / count


def span(burst: Callable[[int], object], count: int) -> Span:
    """When a burst began and ended."""
    began = time.monotonic()
    burst(count)
    return began, time.monotonic()


def per_write(spans: Sequence[Span], count: int) -> float:
    """Seconds of one write of those that all members did at once, `count` each."""
    seconds = max(ended for _, ended in spans) - min(began for began, _ in spans)
    return seconds / (count * len(spans))


# Processes.


class Team:
    """The other members: processes that have a burst when this one has.

    Each calls `connect` with its number, from 1, and the arguments; what comes back has its bursts.
    They end when this process does, whatever it ends from.
    """

    def __init__(self, connect: Callable[..., Callable[[int], object]], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.ends = []
        for number in range(1, MEMBERS):
            ours, theirs = context.Pipe()
            context.Process(
                target=_follow, args=(theirs, connect, number, *arguments), daemon=True
            ).start()
            theirs.close()  # else its death would not be an end of the pipe
            self.ends.append(ours)

    def ready(self) -> None:
        """Wait until all are connected. Raises EOFError if one has ended instead."""
        for end in self.ends:
            end.recv()

    def burst(self, mine: Callable[[int], object], count: int) -> float:
        """All at once; seconds of one write. Raises EOFError if a member has ended instead."""
        for end in self.ends:
            end.send(count)
        spans = [span(mine, count)]
        return per_write(spans + [end.recv() for end in self.ends], count)


def _follow(
    end: Connection, connect: Callable[..., Callable[[int], object]], *arguments: Any
) -> None:
    """Be another member, until the first one closes the pipe."""
    burst = connect(*arguments)
    try:
        end.send(None)
        while True:
            end.send(span(burst, end.recv()))
    except (EOFError, OSError):
        os._exit(0)  # threads of the library may wait for what has ended, too


@contextmanager
def running(command: Sequence[str | Path], **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A server of the peer's, which ends with the block, and with this process.

    To be started while there are no threads yet.
    """
    parent = os.getpid()
    end_with_parent = partial(_end_with_parent, parent)
    process = subprocess.Popen(command, preexec_fn=end_with_parent, **streams)  # noqa: PLW1509
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it was asked for
        os._exit(1)


def until(true: Callable[[], object], what: str) -> None:
    """Wait until it is true; raises TimeoutError."""
    deadline = time.monotonic() + STARTS_WITHIN
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {STARTS_WITHIN:g} s")
        time.sleep(0.01)
