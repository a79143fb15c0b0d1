"""What is logged of bad connections: at most one line a second, with a count of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable

from orcalike.transport.wording import counted

EVERY = 1_000_000_000
"""Nanoseconds between two lines."""


class Complaints:
    """Logs by `log(level, text)`; times are ns, and never go back."""

    def __init__(self, log: Callable[[int, str], None]) -> None:
        self._log = log
        self._next = 0
        self._more = 0

    def say(self, level: int, text: str, now: int) -> None:
        """Log this, or count it if the last line is too recent."""
        if now < self._next:
            self._more += 1
            return
        self.count(now)
        self._next = now + EVERY
        self._log(level, text)

    def deadline(self) -> int | None:
        """When the others are to be logged; None if there are none."""
        return self._next if self._more else None

    def count(self, now: int) -> None:
        """Log how many others there were, if it is time."""
        if self._more and now >= self._next:
            self._log(logging.WARNING, f"{counted(self._more, 'more connection')} refused since")
            self._more = 0
            self._next = now + EVERY
