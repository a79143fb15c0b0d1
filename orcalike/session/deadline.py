"""The moment by which a call must be over that takes several steps: each gets what is left of the time."""

from __future__ import annotations

import time


class Deadline:
    """So many seconds from now; None: no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    def rest(self) -> float | None:
        """The seconds that are left, 0 when it is over; None if there is no limit."""
        return None if self._at is None else max(self._at - time.monotonic(), 0.0)

    def within(self, most: float) -> float:
        """The same, but so many seconds at the most."""
        rest = self.rest()
        return most if rest is None else min(rest, most)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.rest() == 0.0
