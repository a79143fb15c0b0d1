from collections.abc import Callable
from typing import Any, TypeVar

from orcalike.runtime.budget import Budget, HostAccount
from orcalike.runtime.operation import Operation
from orcalike.runtime.replica import Replica
from orcalike.transport.drivers.driver import Driver

_T = TypeVar("_T")

class TimeBudget:
    """How long packets and operations have taken on the thread that receives."""

    accounts: Budget
    host: HostAccount | None
    @property
    def watched_until(self) -> int: ...  # ns: each packet is watched until then
    def run_aside(self, driver: Driver, function: Callable[..., _T], *args: Any) -> _T: ...
    @property
    def hooks(self) -> dict[int, tuple[Replica, str]]: ...
    def run_hook(
        self, driver: Driver, replica: Replica, title: str, function: Callable[..., _T], *args: Any
    ) -> _T: ...
    def start_run(self, driver: Driver) -> tuple[int, int, int | None]: ...
    def stop_run(
        self,
        driver: Driver,
        replica: Replica,
        operation: Operation[Any, ..., Any],
        before: tuple[int, int, int | None],
    ) -> None: ...
