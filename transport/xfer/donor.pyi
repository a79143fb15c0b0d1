from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import View
from orcalike.transport.xfer.kept_state import KeptState

class Donor(Layer):
    known_view: View | None
    complete: bool
    silent: bool
    keeper: KeptState | None
    def __init__(self, core: Core) -> None: ...
    def keep(self, least: int = ...) -> None: ...
