from orcalike.transport.layers.base import Layer

class FastLayer(Layer):
    """A layer that orders, and takes packets from PACK past the layers between."""
