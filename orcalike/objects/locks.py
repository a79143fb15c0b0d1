"""Locks that all members share."""

from __future__ import annotations

from orcalike.objects import language as orca
from orcalike.objects.monitors import Monitor
from orcalike.objects.mutex import describe
from orcalike.objects.ownership import Runner


@orca.shared
class Lock(Monitor):
    """A lock that is held once: `with lock as token:`, or `async with`."""


@orca.shared
class RLock(Monitor):
    """A lock that the thread or task that holds it may acquire again."""

    def _may_enter(self, runner: Runner) -> bool:
        return self._holder is None or (self._runner == runner and self._holder == orca.caller())

    def _is_owned(self, runner: Runner) -> bool:
        return self._holder == orca.caller() and self._runner == runner

    def _check_release(self, runner: Runner) -> None:
        if not self._is_owned(runner):
            raise RuntimeError("cannot release un-acquired lock")

    def __repr__(self) -> str:
        return describe(self, self._holder, f"count={self._depth} ")
