from typing import Self

from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message

class Peer:
    address: str
    incarnation: int | None
    link: int
    place: int
    greeted: bool
    def __new__(cls, address: str) -> Self: ...

def greeting_of(frame: bytes | bytearray | memoryview) -> tuple[str, str, int]: ...

class Com(Layer):
    me: Member
    group: str
    counters: dict[str, int]
    def __init__(self, core: Core, config: StackConfig, me: Member) -> None: ...
    def link_up(self, link: int, address: str) -> None: ...
    def link_down(self, link: int, why: str) -> None: ...
    def connect_failed(self, address: str, why: str) -> None: ...
    def receive(self, link: int, frame: Message) -> None: ...
    def peer_at(self, link: int) -> Peer | None: ...
