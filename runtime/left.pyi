"""What an object of a group that was left still answers."""

from random import Random
from typing import Any

from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import Invocation, Invoker
from orcalike.runtime.operation import Atomic
from orcalike.transport.view import Member

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
