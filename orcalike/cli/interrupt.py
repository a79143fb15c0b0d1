"""Ctrl-C while a command loads its modules: it ends the process at once, with the exit code that it has later."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
"""The exit code of a command that Ctrl-C has ended."""


@contextlib.contextmanager
def ended_at_once() -> Iterator[None]:
    """Have Ctrl-C end the process in this block, or until another handler is set.

    As an exception it could be lost: Python shows and drops what callbacks raise, as those of weak references in its import
    system do, and makes another error of it while a class is made. A handler that is there already, or that it is ignored, stays.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> NoReturn:
    os._exit(INTERRUPTED)
