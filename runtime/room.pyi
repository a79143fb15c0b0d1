from collections.abc import Callable
from typing import Protocol, TypeVar, type_check_only

from orcalike.runtime.invocation import Invocation
from orcalike.transport.drivers.driver import Driver

_R = TypeVar("_R")

@type_check_only
class Complaining(Protocol):
    """What logs calls that wait long, as far as the room takes it."""

    def log_full(self) -> None: ...

@type_check_only
class Hosting(Protocol):
    """The runtime, as far as the room takes it."""

    @property
    def long_waits(self) -> Complaining: ...

@type_check_only
class Filling(Protocol):
    """The sender, as far as the room takes it."""

    driver: Driver
    failure: Exception | None
    @property
    def runtime(self) -> Hosting: ...
    def check_open(self) -> None: ...

class RoomLacking(Exception): ...

class Room:
    """Where calls wait while this member has too much under way."""

    def __init__(self, sender: Filling) -> None: ...
    async def come(self) -> None: ...
    def start(
        self, what: str, seconds: float | None, start: Callable[[], Invocation[_R]]
    ) -> Invocation[_R]: ...
