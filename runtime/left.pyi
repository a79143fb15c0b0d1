"""What an object of a group that was left still answers."""

from random import Random
from typing import Protocol, type_check_only

from orcalike.runtime.divergence import Refusing
from orcalike.runtime.invocation import Invoker
from orcalike.transport.view import Member

@type_check_only
class Leaving(Protocol):
    """The runtime, as far as what is left of it takes it."""

    @property
    def sender(self) -> Refusing: ...
    @property
    def seed(self) -> int: ...
    @property
    def me(self) -> Member: ...
    @property
    def rng(self) -> Random | None: ...
    @property
    def position(self) -> int: ...
    def group_clock(self) -> int: ...

class Left(Invoker):
    """Answers for the objects of a group that was left."""

    seed: int
    me: Member
    stamp: int
    def __init__(self, error: Exception, runtime: Leaving) -> None: ...
    def rng_of_reads(self) -> Random: ...
