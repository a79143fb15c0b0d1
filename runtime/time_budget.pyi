from typing import Any

from orcalike.runtime.budget import Budget, HostAccount
from orcalike.runtime.call import Call
from orcalike.runtime.replica import Replica
from orcalike.transport.drivers.driver import Driver

class TimeBudget:
    """How long packets and operations have taken on the thread that receives."""

    accounts: Budget
    host: HostAccount | None
    @property
    def aside(self) -> Call | None: ...
    def run_aside(self, driver: Driver, call: Call) -> None: ...
    def start_run(self, driver: Driver) -> tuple[int, int, int | None]: ...
    def stop_run(
        self, driver: Driver, replica: Replica, operation: Any, before: tuple[int, int, int | None]
    ) -> None: ...
