"""Leaving a group once, whatever asks for it at the same time."""

from __future__ import annotations

import threading

from orcalike.transport.drivers.driver import Waitable


class Leaving:
    """One caller leaves the group; those that come meanwhile wait until it is left."""

    def __init__(self) -> None:
        self._begun = threading.Lock()
        """Taken for good by the one that leaves."""
        self._leaver = 0
        self._left = Waitable()

    def begins(self) -> bool:
        """Whether nothing has begun to leave yet: the caller does so then, and says when it is over."""
        begins = self._begun.acquire(blocking=False)
        if begins:
            self._leaver = threading.get_ident()
        return begins

    def is_begun(self) -> bool:
        """Whether the caller is to do nothing; if another thread is leaving it waits for that.

        A signal's handler that comes in the midst of leaving does not: what it has interrupted goes on.
        """
        if self.begins():
            return False
        if self._leaver != threading.get_ident():
            self.wait()
        return True

    def wait(self) -> None:
        """Wait until the group is left."""
        self._left.wait()

    def over(self) -> None:
        """The group is left."""
        self._left.finish()
