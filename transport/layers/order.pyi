from typing import final

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.ring.choice import Pair
from orcalike.transport.view import Member

@final
class EitherOrder(Layer):
    apart: dict[Pair, int]
    def __init__(
        self,
        core: Core,
        config: StackConfig,
        me: Member,
        packets: int = ...,
        bytes: int = ...,
        slots: int = ...,
        lane: int = ...,
    ) -> None: ...
    def set_apart(self, pair: Pair, lasts: bool) -> None: ...
    def release(self) -> None: ...
