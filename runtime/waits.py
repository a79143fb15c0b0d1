"""What each thread waits for, for the eyes of a person that looks for a hang.

A wait that has begun in earnest is entered here and taken out when it ends; a call that needs
no waiting never comes by. `orcalike.launcher.stack_dump` prints the table on SIGUSR1. The clock is
read here for people, and decides nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple


class Wait(NamedTuple):
    """One wait of one thread."""

    #: What is waited for, in a word: "reply", "room", "view", "message" or "end".
    kind: str
    #: The shared object's name, or "" where no object is concerned.
    object: str
    #: The operation (`JobQueue.get`), or what the group does (`barrier`), or "".
    operation: str
    #: When it began, by `time.monotonic_ns`.
    since_ns: int
    #: Tells whether a call that has no `reply` yet waits for its guard, as far as this process knows.
    is_guarded: Callable[[], bool] | None = None

    def kind_now(self) -> str:
        """What is waited for now: for a `reply`, or by now for a `guard`."""
        return "guard" if self.is_guarded is not None and self.is_guarded() else self.kind

    def describe(self, now_ns: int) -> str:
        """`12.3 s: guard JobQueue.get on 'jobs'`."""
        words = [self.kind_now()]
        if self.operation:
            words.append(self.operation)
        if self.object:
            words.append(f"on {self.object!r}")
        return f"{(now_ns - self.since_ns) / 1e9:.1f} s: {' '.join(words)}"


#: The waits that are going on, by the thread's ident. A thread has one at a time.
waiting: dict[int, Wait] = {}


def enter(kind: str, object: str = "", operation: str = "") -> None:
    """Say that the calling thread starts to wait."""
    waiting[threading.get_ident()] = Wait(kind, object, operation, time.monotonic_ns())


def note_guard(is_guarded: Callable[[], bool]) -> None:
    """The calling thread waits for a call that may have a guard, and this tells whether it waits for that."""
    wait = waiting.get(threading.get_ident())
    if wait is not None:
        waiting[threading.get_ident()] = wait._replace(is_guarded=is_guarded)


def leave() -> None:
    """Say that the calling thread waits no more."""
    waiting.pop(threading.get_ident(), None)


def all_wait() -> bool:
    """Whether each of the program's threads waits here, or for another one of them to end."""
    frames = sys._current_frames()
    return all(
        thread.ident in waiting or _joins(frames.get(thread.ident or 0))
        for thread in threading.enumerate()
        if not thread.name.startswith("orcalike")
    )


def _joins(frame: FrameType | None) -> bool:
    """Whether a thread waits, without a time limit, for another one to end."""
    if frame is None or frame.f_code.co_filename != threading.__file__:
        return False
    joins = frame.f_code.co_name in ("join", "_wait_for_tstate_lock", "_shutdown")
    return joins and frame.f_locals.get("timeout") in (None, -1)


def report() -> list[str]:
    """One line for each thread that waits, the longest wait first.

    The number in brackets is the one under which `faulthandler` shows the thread's stack.
    """
    now_ns = time.monotonic_ns()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    waits = sorted(waiting.copy().items(), key=lambda item: item[1].since_ns)
    return [
        f"thread {names.get(ident, 'of another library')} (0x{ident:016x}) "
        f"waits {wait.describe(now_ns)}"
        for ident, wait in waits
    ]
