from typing import final

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core
from orcalike.transport.ring.listening import ListeningOrder
from orcalike.transport.view import Member

@final
class SharedOrder(ListeningOrder):
    begins: tuple[int, int]
    frozen: bool
    replicas: int
    def __init__(
        self, core: Core, config: StackConfig, me: Member, slots: int = 65536, lane: int = 1048576
    ) -> None: ...
    @property
    def held(self) -> int: ...
    def lacks_members(self) -> bool: ...
