from collections.abc import Callable
from random import Random
from typing import Any, final

from orcalike.runtime.degrees import Degrees
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.marshal import Codec
from orcalike.runtime.replica import Replica
from orcalike.runtime.room import Room
from orcalike.runtime.under_way import Sending, UnderWay

@final
class Sender(UnderWay):
    """One member's invocations, on the way out."""

    notice: Exception | None
    on_threads: Callable[[], None] | None
    threads_watched: bool
    def __init__(self, runtime: Sending, codec: Codec, degrees: Degrees) -> None: ...
    @property
    def codec(self) -> Codec: ...
    @property
    def room(self) -> Room: ...
    @property
    def writes(self) -> int: ...
    @property
    def seed(self) -> int: ...
    def rng_of_reads(self) -> Random: ...
    def commit(self, number: int, code: int, body: bytes, degree: int = 0) -> None: ...
    def invoke_group(
        self,
        code: int,
        args: tuple[Any, ...],
        what: str,
        wanted: int = 0,
        degree: int = -1,
        awaited: bool = False,
        leaves: bool = True,
    ) -> Invocation[Any]: ...
    def post(
        self,
        code: int,
        args: tuple[Any, ...],
        what: str,
        degree: int = -1,
        replica: Replica | None = None,
    ) -> int: ...
    def hurry_others(self) -> None: ...
    def check_open(self) -> None: ...
    def may_invoke(self) -> bool: ...
