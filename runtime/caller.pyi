from random import Random
from typing import Any

from orcalike.runtime.assemble import Events
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import Invocation, Invoker
from orcalike.runtime.long_waits import LongWaits
from orcalike.runtime.manager import Manager
from orcalike.runtime.marshal import Codec
from orcalike.runtime.operation import Atomic
from orcalike.runtime.receipts import Receipts
from orcalike.transport.drivers.driver import Driver
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member

class Caller(Invoker):
    """One member's invocations, on the way out."""

    driver: Driver
    manager: Manager
    events: Events
    long_waits: LongWaits
    watching: bool
    failure: Exception | None
    notice: Exception | None
    patient: bool
    group_degree: int
    available: bool
    single: bool
    history: Any
    def __init__(self, stack: Stack) -> None: ...
    @property
    def stack(self) -> Stack: ...
    @property
    def codec(self) -> Codec: ...
    @property
    def receipts(self) -> Receipts | None: ...
    @property
    def reads_slow(self) -> int: ...
    @property
    def writes(self) -> int: ...
    def commit(self, number: int, code: int, body: bytes, degree: int = 0) -> None: ...
    def invoke_group(
        self,
        code: int,
        args: tuple[Any, ...],
        what: str,
        wanted: int = 0,
        degree: int = -1,
    ) -> Invocation[Any]: ...
    def awaited(self) -> list[Invocation[Any]]: ...
    def members_needed(self, invocation: Invocation[Any]) -> int: ...
    def has_place(self, invocation: Invocation[Any]) -> bool: ...
    def wanted_of(self, invocation: Invocation[Any]) -> int: ...
    def too_few(self) -> str | None: ...
    def say_too_few(self, degree: int) -> str: ...
    def void(self, invocation: Invocation[Any], taken: list[Any], now: int) -> None: ...
    def post(self, code: int, args: tuple[Any, ...], what: str, degree: int = -1) -> int: ...
    @property
    def effective_degree(self) -> int: ...
    def set_least(self, least: int) -> None: ...
    def invoke_atomic(
        self,
        atomic: Atomic[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        wanted: int = 0,
    ) -> Invocation[Any]: ...
    def call_atomic(
        self,
        atomic: Atomic[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        timeout: float | None,
        wanted: int = 0,
    ) -> Any: ...
    def mark(self) -> int: ...
    def proceed_with(self, layer: Layer) -> None: ...
    def may_invoke(self) -> bool: ...
    async def room(self) -> None: ...
    def settled(self) -> bool: ...

class Left(Invoker):
    """Answers for the objects of a group that was left."""

    seed: int
    me: Member
    stamp: int
    def __init__(self, error: Exception, runtime: Runtime) -> None: ...
    def dice_of_reads(self) -> Random: ...
    def invoke_atomic(
        self,
        atomic: Atomic[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        wanted: int = 0,
    ) -> Invocation[Any]: ...
    def call_atomic(
        self,
        atomic: Atomic[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
        timeout: float | None,
        wanted: int = 0,
    ) -> Any: ...
    async def room(self) -> None: ...

def title_of(invocation: Invocation[Any]) -> str: ...
