"""A flag that all members set, clear and wait for."""

from __future__ import annotations

from orcalike.objects import language as orca
from orcalike.objects.steps import Method, Steps, ask_within
from orcalike.runtime.durations import Duration, in_seconds


@orca.shared
class Event:
    """A flag; to wait for it sends nothing."""

    def __init__(self) -> None:
        self._flag = False

    @orca.read
    def is_set(self) -> bool:
        """Whether the flag is set."""
        return self._flag

    @orca.write
    def set(self) -> None:
        """Set it: all that wait go on."""
        self._flag = True

    @orca.write
    def clear(self) -> None:
        """Clear it."""
        self._flag = False

    @orca.read
    def _wait(self) -> bool:
        return True

    @_wait.when
    def _(self) -> bool:
        return self._flag

    @Method
    def wait(self, timeout: Duration | None = None) -> Steps[bool]:
        """Wait until it is set, for so many seconds: whether it was."""
        seconds = in_seconds(timeout)
        limit = None if seconds is None else max(seconds, 0.0)
        over, _ = yield from ask_within(limit, self._wait)
        return over or self._flag  # another thread may have read it as the time passed

    def __repr__(self) -> str:
        state = "set" if self._flag else "unset"
        return f"<objects.{type(self).__name__} at {id(self):#x}: {state}>"
