from typing import final

from orcalike.transport.total.order import Order

@final
class Sequencer:
    def __init__(self, order: Order, slow: int) -> None: ...
