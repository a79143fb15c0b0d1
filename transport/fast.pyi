from orcalike.transport.layers.ring import SharedOrder

class Fast:
    """The way into one order, in one view."""

    def __init__(self, order: SharedOrder, headers: bytes) -> None: ...
