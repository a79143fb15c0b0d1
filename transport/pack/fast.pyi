from orcalike.transport.layers.base import Layer

class FastPackets(Layer):
    """What this member has cast, by number; and casts that meet nothing before them."""

    ticket: int
    returned: int
    under_way: int
    fragment: int
