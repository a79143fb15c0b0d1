"""Connections that have not greeted: how many there may be, for how long, and which one goes.

Each connection is from a source: a process on a Unix socket, an address on TCP. None takes the
others' room, and none is turned away for those that are there and silent: of a source that has too
many the oldest goes, and of all sources that of the one that has the most.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

GREET_WITHIN = 2_000_000_000
"""Nanoseconds from the accept to a whole greeting."""

OF_ONE_SOURCE = 32
IN_ALL = 256


class HalfOpen:
    """The accepted connections that have not greeted, the oldest first."""

    def __init__(self) -> None:
        self._since: OrderedDict[Any, tuple[int, str]] = OrderedDict()
        self._of: dict[str, OrderedDict[Any, None]] = {}

    def __contains__(self, channel: object) -> bool:
        return channel in self._since

    def add(self, channel: Any, source: str, now: int) -> None:
        """A connection was accepted."""
        self._since[channel] = (now + GREET_WITHIN, source)
        self._of.setdefault(source, OrderedDict())[channel] = None

    def remove(self, channel: Any) -> None:
        """It has greeted, or is closed."""
        _, source = self._since.pop(channel, (0, None))
        if source is not None:
            del self._of[source][channel]
            if not self._of[source]:
                del self._of[source]

    def crowded(self, source: str) -> Any:
        """The connection that goes so that another one of `source` may come; None for none."""
        own = self._of.get(source, ())
        if len(own) >= OF_ONE_SOURCE:
            return next(iter(own))
        return self.most() if len(self._since) >= IN_ALL else None

    def most(self) -> Any:
        """The oldest connection of the source that has the most; None if there are none."""
        if not self._of:
            return None
        source = max(self._of, key=lambda each: len(self._of[each]))
        return next(iter(self._of[source]))

    def deadline(self) -> int | None:
        """When the oldest must have greeted."""
        return next(iter(self._since.values()))[0] if self._since else None

    def overdue(self, now: int) -> list[Any]:
        """Those that have not greeted in time."""
        found = []
        for channel, (deadline, _) in self._since.items():
            if deadline > now:
                break
            found.append(channel)
        return found
