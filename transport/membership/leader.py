"""A leader, or sequencer, that hangs: it beats, and does nothing else (F17).

The member that expels slow ones is the one that leads, so another one must see that it hangs
itself. A member that waits for it asks whether it is there (WAITS): one whose protocol runs answers
at once (ALIVE), whatever else it waits for. One that does not answer for half of `slow_timeout` is
taken for hung, here and at all that are notified of it (SLOW), until it leads again.

A member that waits for another one to lead than before says so to that one (HERE): if that one has
gone on without it, it answers.

The clock is the caller's. A member that was late itself asks once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.membership.messages import Alive, ControlMessage, Here, Lost, Slow, Waits
from orcalike.transport.view import View

if TYPE_CHECKING:

    class Port(Protocol):
        """What the watch needs of the layer that it works for."""

        def tell(self, position: int, message: ControlMessage) -> None:
            """Send a control message to the member at `position`."""

        def suspected(self, incarnation: int, why: str) -> None:
            """Say that a member of the view is suspected."""

        def hangs(self, incarnation: int) -> None:
            """The member that leads does not answer: have the next one begin a new view."""


class LeaderWatch:
    """Asks the member that leads whether it is there, while this one waits for it."""

    def __init__(self, port: Port, agreement: Agreement, slow: int) -> None:
        """`slow` is `slow_timeout`, in nanoseconds."""
        self.port = port
        self.agreement = agreement
        self.timeout = slow // 2
        self.deadline: int | None = None
        """When to `expire`, in ns; None while nothing is waited for."""
        self.asked: int | None = None
        """The incarnation of the leader that was asked and has not answered."""
        self._knows: int | None = None
        """The incarnation of the leader that knows that this member waits for it."""

    def enter(self, view: View) -> None:
        """A new view: its oldest member leads, and nothing is waited for."""
        self._knows = view.members[0].incarnation
        self.clear()

    def clear(self) -> None:
        """Nothing is waited for."""
        self.deadline = self.asked = None

    def wait(self, now: int) -> None:
        """If a change of view is due that another member leads, ask that one after a while."""
        if self.deadline is None and self.agreement.waits:
            self.deadline = now + self.timeout

    def ask(self, now: int) -> None:
        """Ask the member that leads now; once, until it answers."""
        view = self.agreement.view
        if view is None or self.agreement.leader == self.agreement.position:
            return
        leader = view.members[self.agreement.leader].incarnation
        if leader != self.asked:
            self.asked = leader
            self.deadline = now + self.timeout
            self.port.tell(self.agreement.leader, Waits())

    def say_here(self, *, again: bool = False) -> None:
        """If this member waits for another leader than before, say so to that one.

        All that knew that it has gone on may be out themselves, and nothing follows from its silence.
        `again`: it may have gone on since it was sent that last.
        """
        view = self.agreement.view
        if view is None or self.agreement.leader == self.agreement.position:
            return
        leader = view.members[self.agreement.leader].incarnation
        if again or leader != self._knows:
            self._knows = leader
            self.port.tell(self.agreement.leader, Here())

    def say_lost(self, incarnation: int | None) -> None:
        """Have the leader begin a new view: the link to a member broke, or to one that is not known."""
        view = self.agreement.view
        assert view is not None
        if self.agreement.leader != self.agreement.position:
            self._knows = view.members[self.agreement.leader].incarnation
            self.port.tell(self.agreement.leader, Lost(incarnation or 0))

    def again(self, incarnation: int, now: int) -> None:
        """A member can be reached anew: what it was asked may be lost, or what it answered."""
        if incarnation == self.asked:
            self.clear()
            self.ask(now)

    def expire(self, now: int) -> None:
        """Ask, if it is time to; a leader that was asked in time, and has not answered, is out."""
        if self.deadline is None or now < self.deadline:
            return
        late = now - self.deadline > self.timeout // 2
        asked = self.asked
        self.clear()
        view, agreement = self.agreement.view, self.agreement
        if view is None or agreement.leader == agreement.position:
            return
        leader = view.members[agreement.leader].incarnation
        if asked != leader or late:
            if asked == leader or agreement.waits:
                self.ask(now)
            return
        for position, member in enumerate(view.members):
            if position != agreement.position and not agreement.known.is_out(member.incarnation):
                self.port.tell(position, Slow(leader))
        self.port.suspected(leader, "it beats and does not answer")
        self.port.hangs(leader)

    def receive(self, position: int, message: ControlMessage, now: int) -> None:
        """A message of the member at `position`; raises ProtocolError if it makes no sense."""
        view, agreement = self.agreement.view, self.agreement
        assert view is not None
        match message:
            case Waits():
                self.port.tell(position, Alive())
            case Alive():
                if view.members[position].incarnation == self.asked:
                    self.clear()
                    self.wait(now)
            case Slow(incarnation=incarnation):
                hung = view.position(incarnation)
                if hung >= 0 and hung == agreement.leader != agreement.position:
                    self.port.hangs(incarnation)
            case _:
                raise ProtocolError(f"{message.kind} out of place")
