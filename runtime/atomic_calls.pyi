from collections.abc import Mapping
from typing import Any, final

from orcalike.runtime.applying import Applying
from orcalike.runtime.atomic import Atomic
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.replica import Replica

@final
class AtomicCalls:
    """The calls of atomic functions of one group, at one member."""

    def __init__(self, runtime: Applying) -> None: ...
    def invoke(
        self,
        atomic: Atomic[..., Any],
        args: tuple[object, ...],
        named: dict[str, object],
        wanted: int,
        awaited: bool,
        leaves: bool,
    ) -> Invocation[Any]: ...

def replicas_among(args: tuple[object, ...], named: Mapping[str, object]) -> list[Replica]: ...
