"""What TOTAL says in a change of view: what a member holds, a packet that one lacks, and the cut.

A flush makes all members hold the same before the next view begins (Horus 4.3: H62 to H64;
H12).
All of it comes from others, so none is believed before it has the right form.
"""

from __future__ import annotations

from typing import Any, Self

import msgpack
from orcalike.transport.degree import AVAILABLE
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Record
from orcalike.transport.view import Member
from orcalike.transport.wire.control import unpack

SEQNO_MAX = 1 << 63


class Report(Record):
    """All packets below `held` are held, all below `accepted` have enough holders."""

    held: int
    accepted: int

    def pack(self) -> bytes:
        """As it travels."""
        return _pack([self.held, self.accepted])

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for what is none."""
        match _unpack(data):
            case [int(held), int(accepted)] if 0 < held < SEQNO_MAX and 0 < accepted < SEQNO_MAX:
                return cls(held, accepted)
        raise ProtocolError("a report that TOTAL did not make")


class Piece(Record):
    """A packet for a member that lacks it; `sender` is an incarnation."""

    seqno: int
    sender: int
    counter: int
    degree: int
    stamp: int
    body: bytes

    def pack(self) -> bytes:
        """As it travels."""
        return _pack([self.seqno, self.sender, self.counter, self.degree, self.stamp, self.body])

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for what is none."""
        match _unpack(data):
            case [int(seqno), int(sender), int(counter), int(degree), int(stamp), bytes(body)] if (
                0 <= min(seqno, counter, degree, stamp)
                and max(seqno, counter, stamp) < SEQNO_MAX
                and degree < 2 * AVAILABLE
            ):
                return cls(seqno, sender, counter, degree, stamp, body)
        raise ProtocolError("a packet that TOTAL did not send along")


class Cut(Record):
    """What belongs to a view: the packets below `last`; those below `mark` are delivered in it."""

    last: int
    mark: int
    stamp: int
    """The latest of the packets so far, those that are delivered later included."""
    counters: dict[int, int]
    """By incarnation, what a sender counted its last packet with (H5)."""
    senders: tuple[Member, ...]
    """Of the packets that are delivered later."""
    order: bytes = b""
    """Of an order in shared memory: where the view ends there."""

    def pack(self) -> bytes:
        """As it travels."""
        members = {member.incarnation: member.pack() for member in self.senders}
        pairs = list(self.counters.items())
        fields = [self.last, self.mark, self.stamp, pairs, list(members.values())]
        return _pack([*fields, self.order] if self.order else fields)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for what is none."""
        match _unpack(data):
            case [int(last), int(mark), int(stamp), [*pairs], [*senders], *order] if (
                0 < mark <= last < SEQNO_MAX and 0 <= stamp < SEQNO_MAX
            ):
                counters, members = dict(map(_counter, pairs)), tuple(map(Member.unpack, senders))
                if not order:
                    return cls(last, mark, stamp, counters, members)
                if len(order) == 1 and isinstance(order[0], bytes):
                    return cls(last, mark, stamp, counters, members, order[0])
        raise ProtocolError("a cut that TOTAL did not make")


def _counter(pair: object) -> tuple[int, int]:
    match pair:
        case [int(incarnation), int(counter)] if 0 <= counter < SEQNO_MAX:
            return incarnation, counter
    raise ProtocolError("a cut with a counter that is none")


def _pack(value: object) -> bytes:
    packed = msgpack.packb(value)
    assert isinstance(packed, bytes)
    return packed


def _unpack(data: bytes) -> Any:
    return unpack(data, "a report or cut", depth=3)
