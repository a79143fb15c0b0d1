from orcalike.transport.config import StackConfig
from orcalike.transport.fast import FastLayer
from orcalike.transport.layers.base import Core
from orcalike.transport.view import Member, View

class MappedOrder(FastLayer):
    me: Member
    installed: View | None
    position: int
    next: int
    stamp: int
    def __init__(
        self, core: Core, config: StackConfig, me: Member, slots: int, lane: int
    ) -> None: ...

def check_sizes(slots: int, lane: int) -> None: ...
def group_id(group: str, lineage: int) -> bytes: ...
def boot_id() -> bytes: ...
