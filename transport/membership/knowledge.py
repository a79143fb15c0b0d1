"""What a member knows of the members of its view, for both of its roles in the agreement on the next."""

from __future__ import annotations

from collections.abc import Iterable

from orcalike.transport.membership.messages import Value
from orcalike.transport.view import Member, View


class Knowledge:
    """The view that is in force, and which of its members are out, dead, slow or suspected."""

    def __init__(self, me: Member) -> None:
        self.me = me
        self.view: View | None = None
        self.last: Value | None = None
        """What installed the view that is in force."""
        self.newcomers: tuple[Member, ...] = ()
        """Those that are new in the view, while they may not know that: another member was to tell them."""
        self.suspects: frozenset[int] = frozenset()
        self.dead: set[int] = set()
        """Certainly (H13): no member has to wait for them."""
        self.vouched: set[int] = set()
        """Those of them that decided nothing without this member's acceptance (`lease`)."""
        self.expelled: set[int] = set()
        """Too slow for the layers above, or they lie: out at the next view."""
        self.hung: set[int] = set()
        """They did not answer for `slow_timeout`, as coordinators or in a ballot, until they do."""
        self.unsettled = False
        """A link broke, or another member's ballot hangs: a new view must clear that."""
        self.left_out: dict[int, str] = {}
        """The members of the view before that are not in this one, and why, as far as it is known here."""

    @property
    def position(self) -> int:
        """This member's position in the view; -1 outside of any."""
        return self.view.position(self.me.incarnation) if self.view is not None else -1

    @property
    def leader(self) -> int:
        """The position of the oldest member that is not suspected here: it is to coordinate."""
        assert self.view is not None
        for position, member in enumerate(self.view.members):
            if member.incarnation == self.me.incarnation or not self.is_out(member.incarnation):
                return position
        raise AssertionError("this member is in its view")

    def is_out(self, incarnation: int) -> bool:
        """Whether no member waits for an answer of this one."""
        return (
            incarnation in self.suspects
            or incarnation in self.dead
            or incarnation in self.expelled
            or incarnation in self.hung
        )

    def why_out(self, incarnation: int) -> str:
        """Why no member waits for an answer of this one, for people; "" if it is not known here."""
        if incarnation in self.expelled:
            return "it was too slow to take what was ordered, or sent what cannot be true"
        if incarnation in self.hung:
            return "it did not answer"
        return "nothing was heard of it" if incarnation in self.suspects else ""

    def note_dead(self, incarnations: Iterable[int]) -> None:
        """Another member knows that these are certainly dead."""
        if self.view is not None:
            known = {member.incarnation for member in self.view.members}
            self.dead |= set(incarnations) & known - {self.me.incarnation}

    def enter(self, value: Value) -> None:
        """A new view: what was known of members that are in it stays, but for their slowness."""
        present = {member.incarnation for member in value.view.members}
        before = self.view.members if self.view is not None else ()
        out = {member.incarnation for member in before} - present
        self.left_out = {incarnation: self.why_out(incarnation) for incarnation in out}
        self.view = value.view
        self.last = value
        self.newcomers = ()
        self.unsettled = False
        self.expelled = set()
        self.hung = set()
        self.suspects &= present
        self.dead &= present
        self.vouched = set()
