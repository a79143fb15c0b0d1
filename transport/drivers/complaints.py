"""What is logged of bad connections: at most one line a second of each level, with a count of the others."""

from __future__ import annotations

from collections.abc import Callable

from orcalike.transport.wording import counted

EVERY = 1_000_000_000
"""Nanoseconds between two lines."""


class Complaints:
    """Logs by `log(level, text)`; times are ns, and never go back.

    Levels are apart: a line that the program's log leaves out keeps none back that it shows, and is not counted
    in one that it shows.
    """

    def __init__(self, log: Callable[[int, str], None]) -> None:
        self._log = log
        self._next: dict[int, int] = {}
        self._more: dict[int, int] = {}
        """By level: how many are not logged, where there are any."""

    def say(self, level: int, text: str, now: int) -> None:
        """Log this, or count it if the last line of its level is too recent."""
        if now < self._next.get(level, now):
            self._more[level] = self._more.get(level, 0) + 1
            return
        self.count(now)
        self._next[level] = now + EVERY
        self._log(level, text)

    def deadline(self) -> int | None:
        """When the others are to be logged; None if there are none."""
        return min((self._next[level] for level in self._more), default=None)

    def count(self, now: int) -> None:
        """Log how many others there were, if it is time."""
        for level in [level for level in self._more if now >= self._next[level]]:
            more = self._more.pop(level)
            self._next[level] = now + EVERY
            self._log(level, f"{counted(more, 'more connection')} refused since")
