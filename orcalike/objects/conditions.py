"""Waiting, with a lock, until another thread of any member has changed something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from orcalike.errors import BlockingInLoop
from orcalike.objects import language as orca
from orcalike.objects.locks import RLock
from orcalike.objects.monitors import Monitor
from orcalike.objects.ownership import Runner, next_attempt, this_runner
from orcalike.objects.steps import Method, Steps, ask, ask_within, is_cancellation
from orcalike.runtime.durations import Duration, in_seconds
from orcalike.runtime.operation import post

T = TypeVar("T")


@orca.shared
class Condition(RLock):
    """`threading.Condition` with a shared `Lock` or `RLock`, or with an `RLock` of its own."""

    def __init__(self, lock: Monitor | None = None) -> None:
        super().__init__()
        if lock is not None and not isinstance(lock, Monitor):
            raise TypeError(f"a Condition has a shared Lock or RLock, not {lock!r}")
        self._lock = lock
        self._number = orca.position()
        """By which the lock knows the condition: others may be on it."""

    def _home(self) -> Monitor:
        return self if self._lock is None else self._lock

    @Method
    def wait(self, timeout: Duration | None = None) -> Steps[bool]:
        """Release the lock, wait to be notified, and acquire it again: whether that was in time.

        Raises RuntimeError if the lock is not held here.
        """
        seconds = in_seconds(timeout)  # which may raise: before the lock is released
        limit = None if seconds is None else max(seconds, 0.0)
        home, runner, number = self._home(), this_runner(), next_attempt()
        try:
            yield from ask(home._start_wait, self._number, runner, number)
            over, notified = yield from ask_within(limit, home._end_wait, number, runner, True)
            if not over:
                notified = yield from ask(home._end_wait, number, runner, False)
        except BlockingInLoop:
            raise
        except BaseException as error:
            # An interrupt, or a cancelled task, which has the lock again.
            yield from _end_interrupted(home, number, runner, error)
            raise
        return bool(notified)

    @Method
    def wait_for(self, predicate: Callable[[], T], timeout: Duration | None = None) -> Steps[T]:
        """Wait until a predicate, which runs here, gives a true value; returns what it gave last."""
        seconds = in_seconds(timeout)
        until = None if seconds is None else time.monotonic() + seconds
        while not (result := predicate()):
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            yield from Condition.wait.steps(self, left)
        return result

    @Method
    def notify(self, n: int = 1) -> Steps[None]:
        """Have so many of those that wait go on; raises RuntimeError if the lock is not held."""
        yield from ask(self._home()._notify, self._number, this_runner(), n)

    @Method
    def notify_all(self) -> Steps[None]:
        """Have all that wait go on; raises RuntimeError if the lock is not held."""
        yield from ask(self._home()._notify, self._number, this_runner(), 1 << 62)

    def __repr__(self) -> str:
        home = self._home()
        waiting = sum(each[0] == self._number for each in home._waiting)
        return f"<objects.Condition at {id(self):#x}: {waiting} waiting>"


def _end_interrupted(
    home: Monitor, number: int, runner: Runner, error: BaseException
) -> Steps[None]:
    """Have the lock again after an interrupt; a second one, but for a cancellation, ends that."""
    while not isinstance(error, GeneratorExit):  # after which nothing can be waited for
        try:
            yield from ask(home._end_interrupted, number, runner)
        except BaseException as again:
            if not is_cancellation(again):
                post(home._forsake, number)
                raise
        else:
            return
    post(home._forsake, number)
