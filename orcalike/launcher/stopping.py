"""Stopping the ranks of a run: a signal, a grace period, a stronger signal."""

from __future__ import annotations

import signal
from functools import partial

from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.timers import Timers

END = (signal.SIGTERM, signal.SIGKILL)
INTERRUPT = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Stopping:
    """Stops the ranks; `grace` are the seconds between one signal and the next."""

    def __init__(self, table: ProcessTable, timers: Timers, grace: float) -> None:
        self._table = table
        self._timers = timers
        self._grace = grace

    def stop(self, signals: tuple[signal.Signals, ...] = END) -> None:
        """Send the ranks the first signal now, and the next after each grace period.

        Rank 0, which as a rule is the oldest member, gets it last: those that are left meanwhile may go on, and
        none of them says that its group is blocked.
        """
        number, *rest = signals
        for _, child in sorted(self._table.ranks.items(), reverse=True):
            child.signal(number)
            if number != signal.SIGKILL:
                child.signal(signal.SIGCONT)  # a stopped process would never see it
        if rest:
            self._timers.at("stop", self._grace, partial(self.stop, tuple(rest)))
