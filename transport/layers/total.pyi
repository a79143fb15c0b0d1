from typing import final

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core
from orcalike.transport.total.order import Order
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message

@final
class Total(Order):
    me: Member
    counter: int
    begins: tuple[int, int] | None
    def lacks_members(self) -> bool: ...
    def unsent(self) -> list[Message]: ...
    def __init__(
        self,
        core: Core,
        config: StackConfig,
        me: Member,
        packets: int = 1024,
        bytes: int = 16777216,
    ) -> None: ...
