from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member

class Xfer(Layer):
    silent: bool
    complete: bool
    def awaited_donors(self) -> tuple[Member, ...]: ...
    def __init__(self, core: Core, config: StackConfig, me: Member) -> None: ...
