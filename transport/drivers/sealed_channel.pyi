"""A channel under a key; C alone uses it."""

from orcalike.transport.drivers.channel import Channel

class SealedChannel(Channel):
    """One connected stream socket, whose frames travel in sealed records."""
