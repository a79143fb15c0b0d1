from typing import final

from orcalike.transport.total.packets import Packets
from orcalike.transport.view import Member, View

@final
class RetransmitBuffer(Packets):
    """The packets in the order of their numbers."""

    @property
    def bytes(self) -> int: ...
    def move(
        self, before: View, after: View, departed: tuple[Member, ...]
    ) -> tuple[Member, ...]: ...
