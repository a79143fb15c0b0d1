"""Time limits that are over when a test says so: none is so short that a busy machine may not keep it."""

from __future__ import annotations

import time

import pytest

from orcalike.session import waiting
from orcalike.session.session import Session

LIMIT = 3600.0
"""Seconds of a limit that is to be over; it is none that passes by itself."""


class Clock:
    """The clock of the threads that wait, to join or to leave: a limit passes at once."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._passed = 0.0
        patch.setattr(waiting, "time", self)

    def monotonic(self) -> float:
        """Seconds: those of the system, and those that the test has let pass."""
        return time.monotonic() + self._passed

    def end_limit(self, session: Session) -> None:
        """From here on the limit of the call that waits at this session is over."""
        self._passed += LIMIT
        session.waiting.notify()
