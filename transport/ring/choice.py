"""Which order a view has: in shared memory, or through a sequencer. The cut before the view says it, with what that order made.

It comes from others, and is believed only if it has the right form.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Self

import msgpack
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Record
from orcalike.transport.ring.fence import ROWS
from orcalike.transport.view import View
from orcalike.transport.wire.control import unpack


class Choice(Record):
    """What an order of the view before has made of the reports, and which order follows."""

    in_memory: bool
    """Whether the order of the next view is in shared memory."""
    apart: frozenset[int]
    """The incarnations of its members that share no memory with others, as was found."""
    cut: bytes

    def pack(self) -> bytes:
        """As it travels."""
        packed = msgpack.packb([self.in_memory, sorted(self.apart), self.cut])
        assert isinstance(packed, bytes)
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for what is none."""
        match unpack(data, "the choice of an order", depth=2):
            case [bool(in_memory), [*apart], bytes(cut)] if len(apart) <= MEMBERS_MAX and all(
                type(each) is int for each in apart
            ):
                return cls(in_memory, frozenset(apart), cut)
        raise ProtocolError("a cut that ORDER did not make")


def can_share(view: View, apart: AbstractSet[int], is_near: Callable[[str], bool]) -> bool:
    """Whether the members of a view are on this host, share memory as far as is known, and all find room in it."""
    return len(view.members) <= ROWS and all(
        is_near(member.address) and member.incarnation not in apart for member in view.members
    )
