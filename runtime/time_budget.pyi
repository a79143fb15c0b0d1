from typing import Any

from orcalike.runtime.budget import Budget, HostAccount
from orcalike.runtime.operation import Operation
from orcalike.runtime.replica import Replica
from orcalike.runtime.task import Task
from orcalike.transport.drivers.driver import Driver

class TimeBudget:
    """How long packets and operations have taken on the thread that receives."""

    accounts: Budget
    host: HostAccount | None
    @property
    def aside(self) -> Task | None: ...
    def run_aside(self, driver: Driver, call: Task) -> None: ...
    def start_run(self, driver: Driver) -> tuple[int, int, int | None]: ...
    def stop_run(
        self,
        driver: Driver,
        replica: Replica,
        operation: Operation[Any, ..., Any],
        before: tuple[int, int, int | None],
    ) -> None: ...
