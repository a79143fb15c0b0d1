"""What the launcher does later: timers by name, each of which comes once."""

from __future__ import annotations

import time
from collections.abc import Callable


class Timers:
    """The timers of a run. A name has one timer: a new one takes the old one's place."""

    def __init__(self) -> None:
        self._timers: dict[str, tuple[float, Callable[[], None]]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._timers

    def at(self, name: str, seconds: float, callback: Callable[[], None]) -> None:
        """Call back once in so many seconds."""
        self._timers[name] = (time.monotonic() + seconds, callback)

    def cancel(self, name: str) -> None:
        """Take it back, if there is one."""
        self._timers.pop(name, None)

    def clear(self) -> None:
        """Take all back."""
        self._timers.clear()

    def next(self) -> float | None:
        """When the next one is due, by the monotonic clock."""
        return min((at for at, _ in self._timers.values()), default=None)

    def expire(self, now: float) -> None:
        """Call what is due."""
        for name, (at, callback) in list(self._timers.items()):
            if at <= now and self._timers.get(name) == (at, callback):
                del self._timers[name]
                callback()
