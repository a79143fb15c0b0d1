"""The bound on handlers: an inline operation uses 5 ms at the most (D07).

What counts is the processor time that it used, without collections and without what the host of a virtual
machine may have taken, or a quarter of a second in which it waited. One that goes past the bound is
reported with its name, at most once in 10 s; the third time in a minute, and this replica runs it in pop-up
threads, until it has kept within the bound 20 times in a row. A running operation is never moved or ended:
where one runs inline for half a second, another thread goes on with what is received (`relief`), and the
log names it while it runs (`orcalike.session.long_operations`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.runtime.account import REPORT_EVERY, Account
from orcalike.runtime.operation import Operation
from orcalike.runtime.replica import Replica

WINDOW = 60_000_000_000
STRIKES = 3
RETURNS_AFTER = 20

_log = logging.getLogger("orcalike")


if TYPE_CHECKING:

    class HostAccount(Protocol):
        """What the host of a virtual machine takes from it (`orcalike.transport.drivers.stolen`)."""

        def ticks(self) -> int:
            """How much it took so far; 0 where it never took any."""

        def most_since(self, before: int) -> int:
            """At most so many ns were taken since there were `before` ticks."""


class Budget:
    """Keeps account of the operations that took too long; times are in ns."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock

    def exceeded(self, replica: Replica, operation: Operation[Any, ..., Any], took: int) -> None:
        """An operation of an object ran inline, and took `took` ns."""
        if operation.popup:
            return
        now = self._clock()
        if replica.slow is None:
            replica.slow = {}
        account = replica.slow.setdefault(operation.name, Account())
        account.strikes = [at for at in account.strikes if at >= now - WINDOW] + [now]
        promoted = len(account.strikes) >= STRIKES
        if promoted:
            account.strikes.clear()
            account.within = 0
            replica.promote(operation)
        if promoted or now - account.reported >= REPORT_EVERY:
            account.reported = now
            _log.warning(
                "%s of %r ran for %.1f ms where messages are received; 5 ms is the bound%s",
                operation.title,
                replica.name,
                took / 1e6,
                f": from now on it runs in pop-up threads here, as @write(popup=True) does at once, "
                f"until it has kept within the bound {RETURNS_AFTER} times in a row"
                if promoted
                else "",
            )

    def ran(self, replica: Replica, operation: Operation[Any, ..., Any], within: bool) -> None:
        """An operation that was promoted has run in a pop-up thread, `within` the bound or not."""
        account = (replica.slow or {}).get(operation.name)
        if account is None:
            return
        account.within = account.within + 1 if within else 0
        if account.within == RETURNS_AFTER:
            replica.demote(operation)
            _log.info(
                "%s of %r kept within its bound %d times in a row, and runs where messages are "
                "received again",
                operation.title,
                replica.name,
                RETURNS_AFTER,
            )
