from typing import final

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core
from orcalike.transport.pack.fast import FastPackets
from orcalike.transport.pack.pieces import PiecesToCome
from orcalike.transport.view import Member, View

@final
class Pack(FastPackets):
    gathered: int
    size: int
    window_messages: int
    window_bytes: int
    def __init__(
        self,
        core: Core,
        config: StackConfig,
        me: Member,
        size: int = 16384,
        messages: int = 65536,
        bytes: int = 8388608,
        fragment: int = 65536,
        fast: int = 1,
    ) -> None: ...
    def has_room_for(self, size: int) -> bool: ...
    def cast_packets(self) -> None: ...
    def take_back(self, ticket: int, instead: bytes) -> bool: ...
    def hand_up_view(self, view: View, cut: bytes, position: int) -> None: ...
    def hand_up_giving(self, others: PiecesToCome) -> None: ...
