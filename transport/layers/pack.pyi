from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member

class Pack(Layer):
    ticket: int
    returned: int
    under_way: int
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
    ) -> None: ...
    def cast_packets(self) -> None: ...
