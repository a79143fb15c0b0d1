from orcalike.transport.config import StackConfig
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.stability import Stability
from orcalike.transport.view import Member, View

class Matrix:
    members: tuple[Member, ...]
    delivered: int
    window: int
    def __init__(self, window: int = 8192) -> None: ...
    def install(self, view: View) -> None: ...
    def restore(self, delivered: int, counts: dict[int, int]) -> None: ...
    def reached(self, k: int) -> int: ...
    def stability(self) -> Stability: ...

class Stable(Layer):
    matrix: Matrix
    def __init__(
        self, core: Core, config: StackConfig, me: Member, window: int = 8192
    ) -> None: ...
