"""How soon a thread that computes makes way for what comes in, while a group has a thread of its own.

The interpreter lets a waiting thread in after its switch interval, 5 ms as it comes: so long a
member whose main thread computes would not see what others wrote.
"""

from __future__ import annotations

import sys
import threading

INTERVAL = 1e-4
"""Seconds. A tenth of it would gain little more, and have threads that compute switch too often."""


class Switching:
    """The interpreter's switch interval, shortened from the first `shorten` to the last `restore`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = INTERVAL

    def shorten(self) -> None:
        """A group needs it short; one that is shorter already stays."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, INTERVAL))

    def restore(self) -> None:
        """As it was, when no group needs it any more; what the program has set meanwhile stays."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and abs(sys.getswitchinterval() - INTERVAL) < INTERVAL / 100:
                sys.setswitchinterval(self._before)


switching = Switching()
"""The interval is the whole process's, and so is this."""
