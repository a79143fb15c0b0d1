from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.total.retransmit_buffer import RetransmitBuffer

class Order(Layer):
    next: int
    held: int
    accepted: int
    stable_mark: int
    seqno: int
    position: int
    frozen: bool
    stamp: int
    buffer: RetransmitBuffer
    replicas: int
    window_packets: int
    window_bytes: int
    def __init__(self, core: Core, packets: int, size: int) -> None: ...
