from orcalike.transport.drivers.driver import Driver
from orcalike.transport.drivers.sim import Node

class SimDriver(Driver):
    """Serves the stack of a `sim.Node`, for what stands above the stack."""

    away: int
    asleep: int
    def __init__(self, node: Node) -> None: ...
    @property
    def node(self) -> Node: ...
