"""Which order a view has: in shared memory, or through a sequencer. The cut before the view says it, with what that order made.

It comes from others, and is believed only if it has the right form.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, Self

import msgpack
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Record
from orcalike.transport.ring.fence import ROWS
from orcalike.transport.view import View
from orcalike.transport.wire.control import unpack

Pair = tuple[int, int]
"""Two incarnations, the younger first: one cannot map the other's memory; or the same twice, of one that can make none."""


class Choice(Record):
    """What an order of the view before has made of the reports, and which order follows."""

    in_memory: bool
    """Whether the order of the next view is in shared memory."""
    apart: frozenset[Pair]
    """Its members that share no memory with each other, as was found."""
    cut: bytes

    def pack(self) -> bytes:
        """As it travels."""
        apart = [list(pair) for pair in sorted(self.apart)[:MEMBERS_MAX]]
        packed = msgpack.packb([self.in_memory, apart, self.cut])
        assert isinstance(packed, bytes)
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for what is none."""
        match unpack(data, "the choice of an order", depth=3):
            case [bool(in_memory), [*apart], bytes(cut)] if len(apart) <= MEMBERS_MAX:
                return cls(in_memory, frozenset(map(pair_of, apart)), cut)
        raise ProtocolError("a cut that ORDER did not make")


def in_view(apart: AbstractSet[Pair], view: View) -> frozenset[Pair]:
    """The pairs of which both are in a view."""
    present = {member.incarnation for member in view.members}
    return frozenset(pair for pair in apart if present.issuperset(pair))


def can_share(view: View, apart: AbstractSet[Pair], is_near: Callable[[str], bool]) -> bool:
    """Whether the members of a view are on this host, share memory as far as is known, and all find room in it."""
    fits = len(view.members) <= ROWS and not in_view(apart, view)
    return fits and all(is_near(member.address) for member in view.members)


def pair_of(entry: Any) -> Pair:
    """Two incarnations; raises ProtocolError for anything else."""
    match entry:
        case [int(younger), int(older)]:
            return younger, older
    raise ProtocolError("not two members")
