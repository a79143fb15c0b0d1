"""A mutex and the callers that wait with it: the state of `Condition`, kept with the lock that it has.

To release the lock and to begin to wait is one write; so is to be notified and to have the lock again.
"""

from __future__ import annotations

from typing import TypeAlias

from orcalike.objects import language as orca
from orcalike.objects.mutex import Mutex
from orcalike.objects.ownership import Runner

Wait: TypeAlias = tuple[int, int, int, int]
"""(condition, the member's incarnation, the member's number for the wait, how often it had the lock)."""


class Monitor(Mutex):
    """A mutex on which several conditions can be, each with a number."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[Wait] = []
        """Oldest first."""
        self._notified: list[Wait] = []
        """Those that may go on, and do not have the lock yet."""
        self._woken: Wait | None = None
        """The last one that was notified and has the lock again."""

    def _check_owned(self, runner: Runner, what: str) -> None:
        if not self._is_owned(runner):
            raise RuntimeError(f"cannot {what} un-acquired lock")

    @orca.write
    def _start_wait(self, condition: int, runner: Runner, number: int) -> None:
        """Release it and wait."""
        self._check_owned(runner, "wait on")
        self._waiting.append((condition, orca.caller().incarnation, number, self._depth))
        self._let_go()

    @orca.write
    def _end_wait(self, number: int, runner: Runner, patient: bool) -> bool:
        """Have it again, once notified or not `patient` any more: whether it was notified."""
        self._resume(number, runner)
        return self._has_woken(number)

    @_end_wait.when
    def _may_end_wait(self, number: int, runner: Runner, patient: bool) -> bool:
        return self._holder is None and (not patient or self._is_in(self._notified, number))

    @orca.write
    def _end_interrupted(self, number: int, runner: Runner) -> None:
        """Have it again, for a caller that was interrupted, and may have it already.

        If it was notified, another one is in its place.
        """
        if self._is_in_any(number):
            self._resume(number, runner)
        self._pass_on(number)

    @_end_interrupted.when
    def _may_end_interrupted(self, number: int, runner: Runner) -> bool:
        return self._holder is None or not self._is_in_any(number)

    @orca.write
    def _forsake(self, number: int) -> None:
        """Wait no more: the caller goes on without the lock. If it was notified, another one is."""
        key = orca.caller().incarnation, number
        self._forget([each for each in (*self._waiting, *self._notified) if each[1:3] == key])
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        """Notify another one, if that wait is over because it was notified."""
        if self._woken is not None and self._has_woken(number):
            self._wake(self._woken[0], 1)
            self._woken = None

    def _is_in(self, waits: list[Wait], number: int) -> bool:
        member = orca.caller().incarnation
        return any(each[1:3] == (member, number) for each in waits)

    def _is_in_any(self, number: int) -> bool:
        return self._is_in(self._waiting, number) or self._is_in(self._notified, number)

    def _has_woken(self, number: int) -> bool:
        return self._woken is not None and self._woken[1:3] == (orca.caller().incarnation, number)

    def _resume(self, number: int, runner: Runner) -> None:
        """Have the lock again as often as before the wait."""
        key = orca.caller().incarnation, number
        (wait,) = (each for each in (*self._waiting, *self._notified) if each[1:3] == key)
        if wait in self._notified:
            self._woken = wait
        self._waiting = [each for each in self._waiting if each != wait]
        self._notified = [each for each in self._notified if each != wait]
        self._enter(runner, wait[3])

    @orca.write
    def _notify(self, condition: int, runner: Runner, count: int) -> None:
        self._check_owned(runner, "notify on")
        self._wake(condition, count)

    def _wake(self, condition: int, count: int) -> None:
        chosen = [each for each in self._waiting if each[0] == condition][: max(count, 0)]
        self._waiting = [each for each in self._waiting if each not in chosen]
        self._notified = [*self._notified, *chosen]

    def _forget(self, waits: list[Wait]) -> None:
        """They wait no more; a notification that one of them got goes to another one."""
        lost = [each[0] for each in self._notified if each in waits]
        self._waiting = [each for each in self._waiting if each not in waits]
        self._notified = [each for each in self._notified if each not in waits]
        for condition in lost:
            self._wake(condition, 1)

    def member_left(self, member: orca.Member) -> None:
        """What it held is free, and a notification that it got goes to another one."""
        super().member_left(member)
        both = (*self._waiting, *self._notified)
        self._forget([each for each in both if each[1] == member.incarnation])
