"""The bound on handlers: an inline operation takes 5 ms at the most (D07, D20).

One that runs past it is reported with its name, at most once in 10 s; three times over in a
minute, and this replica runs it in pop-up threads from then on. A running operation is never moved
or ended: one that never returns holds up its object, and no other.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from orcalike.runtime.replica import Replica

REPORT_EVERY = 10_000_000_000
WINDOW = 60_000_000_000
STRIKES = 3

_log = logging.getLogger("orcalike")


class Budget:
    """Keeps account of the operations that took too long; times are in ns."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._strikes: dict[tuple[str, str], deque[int]] = {}
        self._reported: dict[tuple[str, str], int] = {}

    def exceeded(self, replica: Replica, operation: Any, took: int) -> None:
        """An operation of an object ran inline for `took` ns."""
        if operation.name in replica.promoted:
            return
        now = self._clock()
        key = (replica.name, operation.name)
        strikes = self._strikes.setdefault(key, deque())
        strikes.append(now)
        while strikes[0] < now - WINDOW:
            strikes.popleft()
        promoted = len(strikes) >= STRIKES
        if promoted:
            replica.promote(operation)
        if promoted or now - self._reported.get(key, -REPORT_EVERY) >= REPORT_EVERY:
            self._reported[key] = now
            _log.warning(
                "%s of %r ran for %.1f ms where messages are received; 5 ms is the bound%s",
                operation.title,
                replica.name,
                took / 1e6,
                ": from now on it runs in pop-up threads here, as @write(popup=True) does at once"
                if promoted
                else "",
            )
