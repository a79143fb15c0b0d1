"""A mutex and the callers that wait with it: the state of `Condition`, kept with the lock that it has.

To release the lock and to begin to wait is one write; so is to be notified and to have the lock again.
"""

from __future__ import annotations

from orcalike.objects import language as orca
from orcalike.objects.mutex import Mutex
from orcalike.objects.ownership import Runner


class Monitor(Mutex):
    """A mutex on which several conditions can be, each with a number."""

    def __init__(self) -> None:
        super().__init__()
        self._waits = 0
        """How many waits there were: each has a number."""
        self._waiting: list[tuple[int, int, int]] = []
        """(wait, condition, the member's incarnation), oldest first."""
        self._notified: list[tuple[int, int, int]] = []
        """Those that may go on, and do not have the lock yet."""

    def _is_owned(self, runner: Runner) -> bool:
        return self._holder is not None and self._holder == orca.caller()

    def _check_owned(self, runner: Runner, what: str) -> None:
        if not self._is_owned(runner):
            raise RuntimeError(f"cannot {what} un-acquired lock")

    @orca.write
    def _start_wait(self, condition: int, runner: Runner) -> tuple[int, int]:
        """Release it and wait: (the wait's number, how often it was acquired)."""
        self._check_owned(runner, "wait on")
        self._waits += 1
        self._waiting.append((self._waits, condition, orca.caller().incarnation))
        depth = self._depth
        self._let_go()
        return self._waits, depth

    @orca.write
    def _end_wait(self, wait: int, runner: Runner, depth: int, patient: bool) -> bool:
        """Have it again, once notified or not `patient` any more: whether it was notified.

        A caller that was interrupted asks twice, and may have it already.
        """
        if self._is_over(wait):
            return True
        notified = self._is_notified(wait)
        self._notified = [each for each in self._notified if each[0] != wait]
        self._waiting = [each for each in self._waiting if each[0] != wait]
        self._enter(runner, depth)
        return notified

    @_end_wait.when
    def _may_end_wait(self, wait: int, runner: Runner, depth: int, patient: bool) -> bool:
        return self._is_over(wait) or (
            self._holder is None and (not patient or self._is_notified(wait))
        )

    def _is_over(self, wait: int) -> bool:
        return not any(each[0] == wait for each in (*self._waiting, *self._notified))

    def _is_notified(self, wait: int) -> bool:
        return any(each[0] == wait for each in self._notified)

    @orca.write
    def _notify(self, condition: int, runner: Runner, count: int) -> None:
        self._check_owned(runner, "notify on")
        self._wake(condition, count)

    def _wake(self, condition: int, count: int) -> None:
        chosen = [each for each in self._waiting if each[1] == condition][: max(count, 0)]
        self._waiting = [each for each in self._waiting if each not in chosen]
        self._notified = [*self._notified, *chosen]

    def member_left(self, member: orca.Member) -> None:
        """What it held is free, and a notification that it got goes to another one."""
        super().member_left(member)
        gone = member.incarnation
        lost = [each[1] for each in self._notified if each[2] == gone]
        self._waiting = [each for each in self._waiting if each[2] != gone]
        self._notified = [each for each in self._notified if each[2] != gone]
        for condition in lost:
            self._wake(condition, 1)
