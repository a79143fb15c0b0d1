from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.history import History
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message

class Total(Layer):
    me: Member
    place: int
    frozen: bool
    next: int
    replicas: int
    counter: int
    stable_mark: int
    stamp: int
    seqno: int
    history: History
    window_packets: int
    window_bytes: int
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
