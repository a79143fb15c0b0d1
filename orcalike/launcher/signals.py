"""Signals to the launcher, as events of its loop; and what none may interrupt before."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def none_ends() -> Iterator[None]:
    """Have those that end a run wait until the block is over; a process that is forked in it is never ended by them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def watch_signals(selector: selectors.BaseSelector, callback: Callable[[int], None]) -> None:
    """Let signals arrive as numbers on a pipe that the loop reads; each is given to `callback`.

    SIGUSR1 is ignored until `accept_sigusr1`; so it is in the processes that are started before.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _wake_up)  # if it was ignored, no child would have an exit status
    for number in (*ENDING, signal.SIGTSTP):
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _wake_up)
    pipe = os.fdopen(reader, "rb", buffering=0)
    selector.register(pipe, selectors.EVENT_READ, partial(_read, pipe, callback))


def accept_sigusr1(wanted: bool) -> None:
    """Whether SIGUSR1 arrives; a process that is started while it does not ignores it at first."""
    signal.signal(signal.SIGUSR1, _wake_up if wanted else signal.SIG_IGN)


def _read(pipe: BinaryIO, callback: Callable[[int], None]) -> None:
    for number in pipe.read(64):
        callback(number)


def _wake_up(number: int, frame: object) -> None:
    """The number comes through the wakeup pipe; the handler has nothing to do."""
