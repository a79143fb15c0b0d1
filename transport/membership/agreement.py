"""The agreement on views: consensus among the members of a view on the one after it (H12).

Every change of view goes this way: joins, leaves and later crashes; all who ask at once change
in one view. The oldest member leads.

1. *Flush* (H62): the leader sends FLUSH with a ballot. Who promises stops numbering,
   acknowledging and delivering the view's packets, and returns what it holds (FLUSH_OK).
2. *View*: from the reports comes the cut, the packets that belong to the old view. The leader
   proposes the new view with the cut; a member accepts only when it holds the whole cut. When
   all have accepted, the view is decided, and INSTALL tells the old members and the new.

This module knows no packets: what is held, and what the cut is, it asks its `Port`. A member
that dies in the middle leaves the change undone, and the view without its primary bit.
"""

from __future__ import annotations

from typing import Any, Protocol

from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import MEMBERS_MAX, Member, View


class Port(Protocol):
    """What the agreement needs of the layer that it works for."""

    def tell(self, place: int, message: list[Any]) -> None:
        """Send a control message to the member at `place`."""

    def contact_with(self, address: str, message: list[Any]) -> None:
        """Send a control message to an endpoint outside the view."""

    def freeze(self) -> None:
        """Freeze the view; `report` is called with what is held."""

    def cut_of(self, reports: dict[int, bytes]) -> bytes:
        """The cut that follows from the members' reports."""

    def has_cut(self, cut: bytes) -> bool:
        """Whether all of the cut is here; else `complete` is called when it is."""

    def install(self, view: View, cut: bytes) -> None:
        """Make `view` the view, after the cut."""


class Agreement:
    """One member's part in the changes of view; its leader's part too, while it is the oldest."""

    def __init__(self, port: Port, me: Member, options: dict[str, Any]) -> None:
        self.port = port
        self.me = me
        self.options = options
        self.view: View | None = None
        self.ballot = 0
        """The highest ballot that was promised in this view."""
        self.proposal: tuple[View, bytes] | None = None
        """What was proposed under that ballot."""
        self.joining: dict[int, Member] = {}
        self.leaving: set[int] = set()
        self._reports: dict[int, bytes] = {}
        self._accepted: set[int] = set()
        self._changing = False

    @property
    def place(self) -> int:
        """This member's place in the view."""
        return self.view.place(self.me.incarnation) if self.view else -1

    def departs(self, incarnation: int) -> bool:
        """Whether a member is known to be on its way out, so that its link may go down."""
        return self.proposal is not None and self.proposal[0].place(incarnation) < 0

    # What the leader does.

    def ask_join(self, member: Member, options: dict[str, Any]) -> str | None:
        """Somebody asks to join; returns why not, or None. At the leader only."""
        assert self.view is not None
        for name, value in options.items():
            if value is not None and self.options.get(name) != value:
                return f"config: the group has {name}={self.options.get(name)!r}, not {value!r}"
        coming = self._coming()
        if len(coming.members) + len(self.joining) >= MEMBERS_MAX:
            return f"the group is full: {MEMBERS_MAX} members"
        ranks = {m.rank for m in (*coming.members, *self.joining.values()) if not m.witness}
        if coming.place(member.incarnation) < 0 and member.incarnation not in self.joining:
            if member.rank is not None and member.rank in ranks:
                return f"rank {member.rank} is in the group already"
            self.joining[member.incarnation] = member
        return None

    def ask_leave(self, incarnation: int) -> None:
        """A member asks to leave. At the leader only."""
        if self.view is not None and self._coming().place(incarnation) >= 0:
            self.leaving.add(incarnation)

    def _coming(self) -> View:
        """The view that is proposed, where one is: who is in it already asks in vain again."""
        assert self.view is not None
        return self.proposal[0] if self.proposal is not None else self.view

    def begin(self) -> None:
        """Start a change where one is asked for and none is under way. At the leader only."""
        if self._changing or self.view is None or self.place != 0:
            return
        if not self.joining and not self.leaving:
            return
        self._changing = True
        self._reports, self._accepted = {}, set()
        ballot = self.ballot + 1
        for place in range(1, len(self.view.members)):
            self.port.tell(place, ["FLUSH", ballot])
        self.promise(ballot)

    def _next_view(self) -> View:
        assert self.view is not None
        members = [m for m in self.view.members if m.incarnation not in self.leaving]
        taken = {m.rank for m in members} | {m.rank for m in self.joining.values()}
        for member in self.joining.values():
            if member.rank is None and not member.witness:
                rank = next(rank for rank in range(MEMBERS_MAX) if rank not in taken)
                taken.add(rank)
                member = Member(member.address, member.incarnation, rank)
            members.append(member)
        return View(*self._next_identity(), tuple(members))

    def _next_identity(self) -> tuple[int, int, int]:
        assert self.view is not None
        return self.view.lineage, self.view.number + 1, self.ballot

    def _awaits(self, place: int) -> bool:
        """Whether the report of the member at `place` is still to come."""
        return self._changing and self.proposal is None and place not in self._reports

    def _flushed(self, place: int, report: bytes) -> None:
        assert self.view is not None
        self._reports[place] = report
        if len(self._reports) < len(self.view.members):
            return
        # Whoever asked until now comes along; later ones wait for the change after this one.
        if all(member.incarnation in self.leaving for member in self.view.members):
            self._turn_away()
        view, cut = self._next_view(), self.port.cut_of(self._reports)
        self.joining, self.leaving = {}, set()
        for other in range(1, len(self.view.members)):
            self.port.tell(other, ["PROPOSE", view.pack(), cut])
        self._propose(view, cut)

    def _turn_away(self) -> None:
        """All leave at once: nobody is left who could give a joiner its state."""
        for member in self.joining.values():
            self.port.contact_with(member.address, ["DENIED", "the group has ended"])
        self.joining = {}

    def _accept(self, place: int) -> None:
        assert self.view is not None
        assert self.proposal is not None
        self._accepted.add(place)
        if len(self._accepted) < len(self.view.members):
            return
        view, cut = self.proposal
        install = ["INSTALL", view.pack(), cut]
        for other in range(1, len(self.view.members)):
            self.port.tell(other, install)
        self._tell_joiners(view, cut)
        self.port.install(view, cut)

    def _tell_joiners(self, view: View, cut: bytes) -> None:
        assert self.view is not None
        for member in view.members:
            if self.view.place(member.incarnation) < 0:
                self.port.contact_with(member.address, ["INSTALL", view.pack(), cut])

    # What every member does.

    def promise(self, ballot: int) -> None:
        """Phase 1: freeze under this ballot; the report follows."""
        self.ballot = ballot
        self.port.freeze()

    def report(self, report: bytes) -> None:
        """What is held here, for the leader."""
        if self.place == 0:
            self._flushed(0, report)
        else:
            self.port.tell(0, ["FLUSH_OK", self.ballot, report])

    def _propose(self, view: View, cut: bytes) -> None:
        self.proposal = view, cut
        if self.port.has_cut(cut):
            self.complete()

    def complete(self) -> None:
        """Phase 2: all of the proposed cut is here, so accept."""
        if self.place == 0:
            self._accept(0)
        else:
            self.port.tell(0, ["ACCEPT", self.ballot])

    def installed(self, view: View) -> None:
        """A new view: ballots begin anew."""
        if self.view is not None and self.proposal is not None and self._takes_over(view):
            # The old leader left, and perhaps ended before a joiner had its word.
            self._tell_joiners(*self.proposal)
        self.view = view
        self.ballot = 0
        self.proposal = None
        self.leaving = set()  # who still wants to, and may, asks again
        self._changing = False

    def _takes_over(self, view: View) -> bool:
        assert self.view is not None
        gone = view.place(self.view.sequencer.incarnation) < 0
        return gone and view.place(self.me.incarnation) == 0

    def receive(self, place: int, message: list[Any]) -> None:
        """A control message of the member at `place`; raises ProtocolError where it makes none."""
        match message:
            case ["FLUSH", int(ballot)] if place == 0 and ballot > self.ballot:
                self.promise(ballot)
            case ["FLUSH_OK", int(ballot), bytes(report)] if self._awaits(place):
                if ballot == self.ballot:
                    self._flushed(place, report)
            case ["PROPOSE", [*packed], bytes(cut)] if place == 0:
                view = View.unpack(packed)
                if self.view is None or view.identity != self._next_identity():
                    raise ProtocolError(f"it proposed {view}, which does not come next")
                self._propose(view, cut)
            case ["ACCEPT", int(ballot)] if self._changing and self.proposal:
                if ballot == self.ballot:
                    self._accept(place)
            case _:
                raise ProtocolError(f"member {place} sent {message!r:.80} out of place")
