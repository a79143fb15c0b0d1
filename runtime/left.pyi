"""What an object of a group that was left still answers."""

from random import Random

from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.invocation import Invoker
from orcalike.transport.view import Member

class Left(Invoker):
    """Answers for the objects of a group that was left."""

    seed: int
    me: Member
    stamp: int
    def __init__(self, error: Exception, runtime: Runtime) -> None: ...
    def rng_of_reads(self) -> Random: ...
