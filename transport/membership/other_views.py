"""Endpoints of other views: what this one sends to them, and what it asks of them (I16, I28).

One that is in an older view gets the present one, or the notice that the group went on without it. One that
may know more is asked: this member says which view it is in, and what it holds (BEHIND). Neither is
done for each message that comes: an answer is repeated after a while.

An incarnation is a member once: one that the group went on without is never let in again.

The clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from orcalike.transport.membership import events
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.membership.messages import (
    Behind,
    ControlMessage,
    Expelled,
    Gone,
    Inside,
    Install,
    Join,
    Ship,
    Value,
)
from orcalike.transport.view import View

ANSWER_AGAIN = 10_000_000
"""After so many ns an endpoint of another view is notified again."""

NOTED_MAX = 4096
"""Endpoints outside of the view that are remembered."""

JOINERS_MAX = 1024
"""Joiners that are known to have been passed on to the leader."""


if TYPE_CHECKING:
    from orcalike.transport.membership.events import Endpoint

    class Port(Protocol):
        """What this needs of the layer that it works for."""

        def step(self, event: events.Event) -> None:
            """A step of the agreement, and all that follows from it."""

        def tell(self, position: int, message: ControlMessage) -> None:
            """Send a control message to the member at `position`."""

        def contact_with(self, address: str, message: ControlMessage) -> None:
            """Send a control message to the endpoint at an address."""

        def ask_what_is_missing(self, address: str) -> None:
            """Say which view this member is in, and what it holds."""

        def ask_leader(self) -> None:
            """A joiner waits for the member that leads: does it hang?"""


class OtherViews:
    """What passes between this endpoint and those that are not in its view."""

    def __init__(
        self,
        port: Port,
        agreement: Agreement,
        missing_before: Callable[[bytes], list[bytes]],
        me: int,
    ) -> None:
        """`me` is this member's incarnation.

        `missing_before` gives the packets of the view before the present one that a member lacks
        which has reported so.
        """
        self._port = port
        self._agreement = agreement
        self._missing_before = missing_before
        self._me = me
        self.former: dict[int, str] = {}
        """The incarnations of earlier views, the last ones at the end; why they are out of the present one, if that is known."""
        self.questioned: dict[str, bool] = {}
        """The addresses that were asked anything since the view began."""
        self.outcome: Value | None = None
        """The value by which this member is out of the group."""
        self._answered: dict[int, int] = {}
        self._asked: set[int] = set()
        self._passed_on: set[int] = set()

    def leave_view(self, view: View) -> None:
        """Another view follows this one."""
        for member in view.members:
            self.former[member.incarnation] = self._agreement.known.left_out.get(
                member.incarnation, ""
            )
        for incarnation in list(self.former)[:-NOTED_MAX]:
            del self.former[incarnation]

    def enter(self) -> None:
        """A view begins: what was asked and answered before does not count."""
        self._answered.clear()
        self._asked.clear()
        self._passed_on.clear()
        self.questioned.clear()

    def sent(self, address: str, message: ControlMessage) -> None:
        """A control message was sent to an endpoint outside of the view, or a member as such a one."""
        if isinstance(message, Join | Behind) and len(self.questioned) < NOTED_MAX:
            self.questioned[address] = True

    def is_known(self, incarnation: int) -> bool:
        """Whether an endpoint is in the view, or in the next one as far as that is known here.

        One that is still to join knows no member, and must receive all.
        """
        view = self._agreement.view
        if view is None or view.position(incarnation) >= 0:
            return True
        proposed = self._agreement.proposed()
        return proposed is not None and proposed.position(incarnation) >= 0

    # What is sent to them.

    def may_answer(self, incarnation: int, now: int) -> bool:
        """Whether one that speaks of another view is notified of this one now: not each time."""
        last = self._answered.get(incarnation)
        if last is not None and now - last < ANSWER_AGAIN:
            return False
        if len(self._answered) >= NOTED_MAX:
            self._answered.clear()
        self._answered[incarnation] = now
        return True

    def tell_expelled(self, address: str, incarnation: int) -> None:
        """Tell the endpoint at an address that the group went on without this incarnation of it."""
        assert self._agreement.view is not None
        why = self.former.get(incarnation, "")
        self._port.contact_with(address, Expelled(self._agreement.view, incarnation, why))

    def correct(self, peer: Endpoint | None, now: int) -> None:
        """It is in an older view: tell it the present one, or that it is out (I16)."""
        view, last = self._agreement.view, self._agreement.known.last
        if view is None or peer is None or not self.may_answer(peer.incarnation, now):
            return
        if view.position(peer.incarnation) < 0:
            self.tell_expelled(peer.address, peer.incarnation)
        elif last is not None:
            self._port.contact_with(peer.address, Install(view, last.cut))

    def learned_of(self, view: View, peer: Endpoint | None, now: int) -> None:
        """It speaks of a view as the newest: if that is of an older lineage, tell it the present one."""
        if self._agreement.view is not None and view.lineage < self._agreement.view.lineage:
            self.correct(peer, now)

    def answer(self, peer: Endpoint | None, question: Behind, now: int) -> bool:
        """It asks for what brings it into the present view; whether it is a member that lacks that."""
        view, last = self._agreement.view, self._agreement.known.last
        if view is None or peer is None:
            return False
        is_newer = question.view > view.identity
        if view.position(peer.incarnation) < 0:
            if self.may_answer(peer.incarnation, now):
                self._answer_non_member(peer, is_newer)
        elif question.view < view.identity:
            if view.follows == question.view:
                for piece in self._missing_before(question.held):
                    self._port.contact_with(peer.address, Ship(piece, question.view))
            assert last is not None
            self._port.contact_with(peer.address, Install(view, last.cut))
            return True
        elif is_newer:  # it waits, without this member, which does not know
            self._port.ask_what_is_missing(peer.address)
        return False

    def _answer_non_member(self, peer: Endpoint, is_newer: bool) -> None:
        if not is_newer:
            self.tell_expelled(peer.address, peer.incarnation)
        elif self._agreement.missed() or peer.incarnation in self.former:
            # It is this member that is behind, perhaps. If any other endpoint could make it ask,
            # the question would not be its own.
            self._port.ask_what_is_missing(peer.address)

    def link_broke(self, peer: Endpoint, *, stands: bool) -> None:
        """A link to an endpoint outside of the view broke; `stands`: there is another one.

        What was sent to it of this view may be lost with the link: it is sent again over each other one
        that stands, of which all but one may be dead, and once over a new one.
        """
        if peer.incarnation in self._answered:
            if not stands:
                del self._answered[peer.incarnation]
            self.tell_expelled(peer.address, peer.incarnation)

    def say_gone(self, peer: Endpoint | None, now: int, *, has_left: bool) -> None:
        """A group that counts on this endpoint, or seeks it, learns that it is out.

        A member that missed the view without this one may have no other to ask for it.
        """
        if peer is None or not self.may_answer(peer.incarnation, now):
            return
        if self.outcome is not None and self.outcome.view.position(peer.incarnation) >= 0:
            self._port.contact_with(peer.address, Install(*self.outcome))
        elif not has_left:
            self._port.contact_with(peer.address, Gone())
        elif self.outcome is not None:
            # It may wait for this one, which answers no more, and have no other to ask, either.
            self._port.contact_with(peer.address, Expelled(self.outcome.view, peer.incarnation, ""))

    # What is asked.

    def ask_of_next_view(self, peer: Endpoint, now: int) -> None:
        """It speaks in a view that this member does not know yet."""
        if (
            self._agreement.view is not None
            and peer.address
            and self.may_answer(peer.incarnation, now)
        ):
            self._port.ask_what_is_missing(peer.address)

    def ask_for_cut(self, next_view: View) -> None:
        """What must be delivered before the next view is not all here: ask its members in turn."""
        view = self._agreement.view
        assert view is not None
        for member in next_view.members:
            if (
                member.incarnation != self._me
                and member.incarnation not in self._asked
                and view.position(member.incarnation) >= 0
            ):
                self._asked.add(member.incarnation)
                self._port.ask_what_is_missing(member.address)
                return

    def asked_to_join(self, join: Join, source: int) -> None:
        """An endpoint asks to be let in; `source` is the position of the member that has passed it on, or -1."""
        agreement, view = self._agreement, self._agreement.view
        member, options = join.member, join.options
        assert view is not None
        if join.round and source < 0:
            self._port.contact_with(member.address, Inside(join.round))
        if view.position(member.incarnation) >= 0:
            assert agreement.known.last is not None
            self._port.contact_with(member.address, Install(*agreement.known.last))
        elif member.incarnation in self.former:
            self.tell_expelled(member.address, member.incarnation)
        elif agreement.leader != agreement.position:
            self._port.tell(agreement.leader, Join(member, options))
            if member.incarnation in self._passed_on:  # in vain, so far
                self._port.ask_leader()
            elif len(self._passed_on) < JOINERS_MAX:
                self._passed_on.add(member.incarnation)
        else:
            self._port.step(events.JoinAsked(member, options, source))
