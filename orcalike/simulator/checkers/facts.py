"""What checkers get of a group, and what they all may look up.

Members are named by their incarnation. A cast is named by its sender and the sender's own count of
its casts, from 1 on; its body says both, so that nothing else can pass for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from orcalike.transport.view import resets_of

Key = tuple[int, int]
"""(seqno, index): a place in the total order of one lineage."""
Identity = tuple[int, int, int]
"""Of a view: (lineage, number, ballot)."""
Name = tuple[int, int]
"""Of a cast: (sender, number)."""

MAJORITY, ALL = 254, 255
"""Degrees that depend on the view."""
BODY_MIN = 8


class Violation(AssertionError):
    """A promise was broken: which invariant, at which member."""

    def __init__(self, id_: str, message: str) -> None:
        super().__init__(f"{id_}: {message}")
        self.id = id_


@dataclass(frozen=True, slots=True)
class Installed:
    """A view, as a member saw it."""

    identity: Identity
    members: tuple[int, ...]
    """All of them, oldest first."""
    witnesses: frozenset[int] = frozenset()
    kept: bool = field(default=False, compare=False)
    """Whether a witness among them has kept the state."""
    whole: int | None = field(default=None, compare=False)
    """How many members with replicas were known to have complete state as it began."""
    in_memory: bool = field(default=False, compare=False)
    """Its order is in memory that its members share: each holds all that is in it, whatever its degree."""

    @property
    def ends_state(self) -> bool:
        """Whether no member has state: the next to come begins anew."""
        return self.witnesses.issuperset(self.members) and not self.kept

    @property
    def lineage(self) -> int:
        """Its lineage."""
        return self.identity[0]

    @property
    def number(self) -> int:
        """Its number."""
        return self.identity[1]


@dataclass(frozen=True, slots=True)
class Cast:
    """What a member has cast."""

    sender: int
    number: int
    body: bytes
    degree: int = 0
    after: tuple[int, Key] = (0, (0, 0))
    """(lineage, place) of what its sender had seen last."""


@dataclass(slots=True)
class Seen:
    """What one member has seen so far."""

    view: Installed | None = None
    last: Key = (0, 0)
    """Of what was delivered last."""
    count: int = 0
    """How many casts were delivered in this view."""
    sources: dict[int, int] = field(default_factory=dict)
    """Sender -> the number of its last cast that was delivered here."""
    exited: str | None = None
    dead: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether it takes part in nothing any more: it is dead, or out of the group for good."""
        return self.dead or self.exited is not None


@dataclass(slots=True)
class Facts:
    """What has happened so far in the group, for all checkers; they change nothing in it."""

    least: int = 0
    """R: the least degree of 1 or more of any cast (H2)."""
    broken: Violation | None = None
    """The last promise that was found broken."""
    casts: dict[Name, Cast] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)
    """How many casts each member has made."""
    acked: dict[Name, tuple[Key, Installed]] = field(default_factory=dict)
    """The places of casts that were delivered at their own sender, and its view then."""
    anew: Identity = (0, 0, 0)
    """The last view in which no member had state: what was written before is gone, by their own will."""
    seen: dict[int, Seen] = field(default_factory=dict)
    views: dict[Identity, Installed] = field(default_factory=dict)
    whole: dict[tuple[Identity, int], int | None] = field(default_factory=dict)
    """(view, member) -> how many members with replicas it knew to have complete state as it began that view."""
    starts: dict[Identity, int] = field(default_factory=dict)
    """The seqno that is delivered next where a view begins."""
    cuts: dict[Identity, int] = field(default_factory=dict)
    """The first seqno that no member holds when a view begins."""
    rivals: dict[tuple[int, int], list[Identity]] = field(default_factory=dict)
    """The views of one lineage and number."""
    latest: dict[int, int] = field(default_factory=dict)
    """The highest number of a view in each lineage."""
    installed: dict[Identity, list[int]] = field(default_factory=dict)
    """The members that have installed a view."""
    promised: dict[Identity, set[int]] = field(default_factory=dict)
    """The members that went along with the end of a view."""
    leavers: set[int] = field(default_factory=set)
    """The members that asked to leave."""
    placed: dict[tuple[int, Key], tuple[Name, Identity]] = field(default_factory=dict)
    """(lineage, place) -> what was delivered there last, and in which view."""
    pinned: dict[Identity, Key] = field(default_factory=dict)
    """The last place in a view at which a cast that is kept was delivered anywhere."""

    def degree_in(self, degree: int, view: Installed, sender: int) -> int:
        """How many others must hold a cast of that degree in that view (H2).

        After a reset no more than there are, with complete state (Amoeba 3.1), as far as the member
        knows that counts them: the sequencer, or, in memory, the sender itself.
        """
        if degree == MAJORITY:
            return len(view.members) // 2
        if degree == ALL:
            return len(view.members) - 1
        counts = sender if view.in_memory else view.members[0]
        first = self.views.get(view.identity, view).whole
        whole = self.whole.get((view.identity, counts), first)
        if whole is not None and resets_of(view.lineage):
            return min(degree, max(whole - 1, 0))
        return degree

    def least_in(self, view: Installed) -> int:
        """R, as it counts in that view: in memory all is held by all, and none is counted."""
        return 0 if view.in_memory else self.degree_in(self.least, view, view.members[0])

    def is_kept(self, name: Name, view: Installed) -> bool:
        """Whether a cast that was delivered anywhere in that view must not be lost."""
        return view.in_memory or self.casts[name].degree > 0

    def is_pinned(self, view: Identity, key: Key) -> bool:
        """Whether what was delivered there must stay: it, or something behind it, is kept."""
        return self.pinned.get(view, (0, 0)) >= key

    def members_of(self, identity: Identity) -> list[int]:
        """The members that are in that view now, and run."""
        return [
            member
            for member in self.installed.get(identity, ())
            if (seen := self.seen[member]).view is not None
            and seen.view.identity == identity
            and not seen.dead
            and seen.exited is None
        ]

    def served_by(self, live: list[int], blocked: bool) -> Iterator[tuple[int, Seen, Installed]]:
        """The live members with replicas, and what they have seen; none if the group is blocked."""
        for member in [] if blocked else live:
            seen = self.seen[member]
            if seen.view is not None and member not in seen.view.witnesses:
                yield member, seen, seen.view


class Checker:
    """Checks one invariant; the calls that it does not need do nothing.

    Each is made before `facts` follow. `fail` raises the violation.
    """

    id = ""
    """Of the invariant, as in docs/internals/invariants.md."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def cast(self, cast: Cast) -> None:
        """A member casts."""

    def deliver(self, member: int, key: Key, name: Name, body: bytes, holders: int | None) -> None:
        """A cast is delivered at `member`; `holders` hold it, if that was counted."""

    def view(self, member: int, view: Installed, start: int | None, held: int | None) -> None:
        """`view` is installed at `member`, which delivers `start` next, and does not hold `held`."""

    def state(self, member: int, view: Installed, digest: int) -> None:
        """`member` has a state as of `view`; that of a joiner is the one that it was given."""

    def exit(self, member: int, why: str) -> None:
        """`member` is out of the group."""

    def gauge(self, member: int, packets: int, packets_max: int, size: int, size_max: int) -> None:
        """How much `member` keeps that is not stable, and how much it may keep."""

    def finish(self, live: list[int], blocked: bool) -> None:
        """It is over; `live` are the members of the last view that run, and may be blocked."""

    def fail(self, member: int, what: str) -> None:
        """Raise the violation, and keep it: where a frame is handled, a stack takes it for a fault of its sender."""
        self.facts.broken = Violation(self.id, f"at {member:x}: {what}")
        raise self.facts.broken


def body_of(sender: int, number: int, size: int) -> bytes:
    """A body of that size, but of 8 bytes at least, that no other cast has."""
    size = max(size, BODY_MIN)
    stamp = blake2b(b"%d/%d" % (sender, number), digest_size=BODY_MIN - 4).digest()
    text = number.to_bytes(4, "little") + stamp
    return text + text[-1:] * (size - len(text))


def number_of(body: bytes) -> int:
    """The number of the cast that has that body."""
    return int.from_bytes(body[:4], "little")
