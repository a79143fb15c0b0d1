from typing import final

from orcalike.transport.view import Member, View

class Held:
    """A packet with its seqno, kept until it is stable."""

@final
class RetransmitBuffer:
    """The packets in the order of their numbers."""

    @property
    def bytes(self) -> int: ...
    def sender(self, held: Held, view: View, departed: tuple[Member, ...]) -> Member: ...
    def move(
        self, before: View, after: View, departed: tuple[Member, ...]
    ) -> tuple[Member, ...]: ...
