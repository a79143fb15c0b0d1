from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member, View

class SharedOrder(Layer):
    me: Member
    view: View | None
    position: int
    next: int
    stamp: int
    begins: tuple[int, int]
    frozen: bool
    replicas: int
    def __init__(
        self, core: Core, config: StackConfig, me: Member, slots: int = 65536, lane: int = 1048576
    ) -> None: ...
    @property
    def held(self) -> int: ...
    def lacks_members(self) -> bool: ...

def group_id(group: str, lineage: int) -> bytes: ...
def boot_id() -> bytes: ...
