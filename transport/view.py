"""Views: the numbered list of members, oldest first, that a group agrees on (H02).

A view's identity is (lineage, number, ballot) (H1). What is here is data: the
agreement on views is in `membership/`.

A ballot is `round << POSITION_BITS | position of its leader`: no two leaders have the same. The first
lineage is 1; each `reset` begins a higher one, which no other reset begins (`next_lineage`).
"""

from __future__ import annotations

from typing import Any

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Frozen, replaced
from orcalike.transport.wire.digest import blake2b
from orcalike.transport.wording import counted

POSITION_BITS = 10
"""Of a ballot: the position of its leader."""

BALLOT_BITS = 24
"""Of a ballot, and the part of a lineage that says which ballot began it."""

ORIGIN_BITS = 32
"""Of a lineage: which view it goes on from."""

LINEAGE_BITS = BALLOT_BITS + ORIGIN_BITS
"""Of a lineage, below the count of resets."""

BALLOT_MAX = (1 << BALLOT_BITS) - 1
NUMBER_MAX = (1 << 32) - 1
LINEAGES_MAX = 1 << 7

ADDRESS_MAX = 255
"""Characters: the kernel takes no longer paths for sockets than 107 bytes."""


def is_address(text: str) -> bool:
    """Whether a text from outside may be an address, and be shown to people."""
    return len(text) <= ADDRESS_MAX and text.isprintable() and ":" in text


def share_host(one: str, other: str) -> bool:
    """Whether processes that listen at these addresses run on one host, as far as the addresses say."""
    return _host(one) == _host(other)


def _host(address: str) -> str:
    """What all addresses of a host have in common: that they are paths, or the host's own address."""
    return "unix" if address.startswith("unix:") else address.rpartition(":")[0]


def next_lineage(before: tuple[int, int, int], ballot: int) -> int:
    """The lineage that a reset of the view with the identity `before` begins under `ballot`.

    One ballot is one reset's, but only in its view: a group and a member that it went on without
    may each be reset, from views of their own. So a lineage has a digest of that view, too.

    Raises:
        OverflowError: it would be past the last one.
    """
    count = resets_of(before[0]) + 1
    if count >= LINEAGES_MAX:
        raise OverflowError(f"{LINEAGES_MAX} lineages are over: make a new group")
    text = b"%d %d %d" % before
    origin = int.from_bytes(blake2b(text, digest_size=ORIGIN_BITS // 8).digest())
    return count << LINEAGE_BITS | ballot << ORIGIN_BITS | origin


def resets_of(lineage: int) -> int:
    """How many resets have led to a lineage."""
    return lineage >> LINEAGE_BITS


def is_rank(value: object) -> bool:
    """Whether it is a rank that a program can have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MEMBERS_MAX


class Member(Frozen):
    """One process's endpoint in a group."""

    address: str
    """Where it listens: `unix:PATH`, `tcp:HOST:PORT`, `sim:NAME`, or "" where it does not."""
    incarnation: int
    """64 random bits, drawn anew by each start: a restarted process is another member."""
    rank: int | None = None
    """Its lasting number in the program; None for a witness, or where it is not given yet."""
    witness: bool = False
    """It orders and keeps, and has no replicas."""

    def __init__(
        self, address: str, incarnation: int, rank: int | None = None, witness: bool = False
    ) -> None:
        super().__init__(address, incarnation, rank, witness)

    def pack(self) -> list[Any]:
        """As a list that msgpack can carry."""
        return [self.address, self.incarnation, self.rank, self.witness]

    @classmethod
    def unpack(cls, data: object) -> Member:
        """From what `pack` made; raises ProtocolError if it is anything else."""
        match data:
            case [str(address), int(incarnation), int() | None as rank, bool(witness)]:
                ranked = rank is None or is_rank(rank)
                named = not address or is_address(address)
                if 0 <= incarnation < 1 << 64 and ranked and named:
                    return cls(address, incarnation, rank, witness)
        raise ProtocolError("not a member")

    def __str__(self) -> str:
        role = "witness" if self.witness else f"rank {self.rank}"
        return f"{role} ({self.address or 'in this process'})"


class View(Frozen):
    """A list of members, oldest first; none if all left at once. The first orders, if there is a sequencer."""

    lineage: int
    number: int
    ballot: int
    members: tuple[Member, ...]
    primary: bool = True
    """Whether its members may write. Each view that is installed is primary; what a program sees of
    it is not while the group is blocked, nor at a member that is out of the group."""
    follows: tuple[int, int, int] = (0, 0, 0)
    """The identity of the view before it; zeros for the first of a group."""

    def __init__(
        self,
        lineage: int,
        number: int,
        ballot: int,
        members: tuple[Member, ...],
        primary: bool = True,
        follows: tuple[int, int, int] = (0, 0, 0),
    ) -> None:
        super().__init__(lineage, number, ballot, members, primary, follows)

    @classmethod
    def first(cls, member: Member) -> View:
        """The first view of a group that `member` makes."""
        rank = 0 if member.rank is None and not member.witness else member.rank
        return cls(1, 1, 0, (replaced(member, rank=rank),))

    @property
    def identity(self) -> tuple[int, int, int]:
        """(lineage, number, ballot)."""
        return (self.lineage, self.number, self.ballot)

    @property
    def mark(self) -> int:
        """24 bits in which it differs from any other view of that number: ballot and lineage."""
        lineage = self.lineage >> ORIGIN_BITS ^ self.lineage >> ORIGIN_BITS - BALLOT_BITS
        return (self.ballot ^ lineage) & BALLOT_MAX

    @property
    def key(self) -> int:
        """Count of resets (7 bits), number (32), ballot and lineage (24): it grows with each view."""
        return resets_of(self.lineage) << 56 | self.number << BALLOT_BITS | self.mark

    def is_after(self, other: View) -> bool:
        """Whether this is of a later lineage, or has a higher number in the same one."""
        return (self.lineage, self.number) > (other.lineage, other.number)

    @property
    def sequencer(self) -> Member:
        """The oldest member, which orders; if the order is in shared memory no member does."""
        return self.members[0]

    @property
    def replicas(self) -> tuple[Member, ...]:
        """The members with replicas and a rank, by rank."""
        ranked = [member for member in self.members if not member.witness]
        return tuple(sorted(ranked, key=lambda member: member.rank or 0))

    @property
    def others(self) -> tuple[Member, ...]:
        """The members without a rank: witnesses."""
        return tuple(member for member in self.members if member.witness)

    def position(self, incarnation: int) -> int:
        """The position of the member with that incarnation; -1 if it is not in this view."""
        for position, member in enumerate(self.members):
            if member.incarnation == incarnation:
                return position
        return -1

    def pack(self) -> list[Any]:
        """As a list that msgpack can carry."""
        members = [member.pack() for member in self.members]
        return [self.lineage, self.number, self.ballot, members, self.primary, list(self.follows)]

    @classmethod
    def unpack(cls, data: object) -> View:
        """From what `pack` made; raises ProtocolError if it is anything else."""
        match data:
            case [
                int(lineage),
                int(number),
                int(ballot),
                [*members],
                bool(primary),
                [int(before), int(last), int(round_)],
            ]:
                small = 0 <= ballot <= BALLOT_MAX and 0 < number <= NUMBER_MAX
                known = 0 < lineage < LINEAGES_MAX << LINEAGE_BITS
                follows = before, last, round_
                if small and known and len(members) <= MEMBERS_MAX and _precedes(follows):
                    listed = tuple(Member.unpack(member) for member in members)
                    if len({member.incarnation for member in listed}) == len(listed):
                        return cls(lineage, number, ballot, listed, primary, follows)
        raise ProtocolError("not a view")

    def __str__(self) -> str:
        return f"view {self.number} of {counted(len(self.members), 'member')}"


def _precedes(identity: tuple[int, int, int]) -> bool:
    """Whether another view can follow one of this identity."""
    lineage, number, ballot = identity
    return (
        0 <= lineage < LINEAGES_MAX << LINEAGE_BITS
        and 0 <= number < NUMBER_MAX
        and 0 <= ballot <= BALLOT_MAX
    )
