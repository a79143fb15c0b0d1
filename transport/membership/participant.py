"""What each member does in a change of view: it promises a ballot, reports, and accepts a value.

It knows no packets: what is held, and whether a cut is complete, it asks `Holdings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orcalike.transport.application_state import State
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.membership import events
from orcalike.transport.membership.effects import Effect, Freeze, Mark, ReportBlocked, Send
from orcalike.transport.membership.knowledge import Knowledge
from orcalike.transport.membership.messages import (
    Accept,
    Blocked,
    Flush,
    FlushOk,
    Ship,
    Value,
)
from orcalike.transport.membership.state import (
    PARTICIPANT,
    Machine,
    ParticipantCause,
    ParticipantState,
)
from orcalike.transport.wire.control import shown

if TYPE_CHECKING:
    from orcalike.transport.membership.holdings import Holdings

OLDEST_WATCHED = 4
"""So many of the oldest are watched by all: the next coordinator is known as soon as one fails."""


class Participant:
    """One member's promises, reports and acceptances in the view that is in force."""

    def __init__(self, known: Knowledge, holdings: Holdings, out: list[Effect]) -> None:
        self.known = known
        self.holdings = holdings
        self.out = out
        self.machine = Machine("participant", ParticipantState.OUTSIDE, PARTICIPANT, out)
        self.promised = 0
        """The highest ballot that was promised in this view."""
        self.highest = 0
        """The highest ballot that another member was seen to use."""
        self.accepted: tuple[int, Value] | None = None
        self.proposal: tuple[int, Value] | None = None
        """What is to be accepted as soon as its whole cut is here."""
        self.is_chosen = False
        """Whether enough have accepted what this member has: no other value can be decided on in this view."""
        self.deferred: dict[int, Flush] = {}
        """The last FLUSH of each position whose time has not come."""
        self.notice: events.WentOn | None = None
        """The last word that the group has gone on without this member, which is not out yet."""
        self._mark = b""
        """What the coordinator holds."""

    @property
    def coordinator(self) -> int:
        """The position of the member whose ballot is promised."""
        return self.promised & MEMBERS_MAX - 1

    def follows(self, position: int) -> bool:
        """Whether the member at `position` may coordinate: all older ones are out, as seen here."""
        assert self.known.view is not None
        return all(
            self.known.is_out(member.incarnation)
            for member in self.known.view.members[: min(position, OLDEST_WATCHED)]
        )

    def defer(self, position: int, flush: Flush) -> None:
        """A FLUSH of a member that may not coordinate, as seen here: it may later."""
        self.deferred[position] = flush
        self.highest = max(self.highest, flush.ballot)

    def promise(self, flush: Flush) -> None:
        """Phase 1: freeze under this ballot; what is held follows."""
        if flush.ballot != self.promised:
            self._promise(flush.ballot)
        self._mark = flush.mark
        self.out.append(Freeze())

    def promise_own(self, ballot: int) -> None:
        """The same, if this member coordinates."""
        self._promise(ballot)
        self.out.append(Freeze())

    def _promise(self, ballot: int) -> None:
        self.machine.change(ParticipantCause.PROMISED)
        self.promised = ballot
        self.proposal = None

    def report(self, held: bytes) -> None:
        """What is held here, and what the coordinator lacks of it."""
        position = self.coordinator
        for piece in self.holdings.missing(self._mark):
            self.out.append(Send(position, Ship(piece)))
        self.out.append(Mark("V3"))
        answer = FlushOk(
            self.promised,
            held,
            self.accepted,
            tuple(self.known.dead),
            State(self.holdings.has_state()),
            tuple(self.known.vouched),
            self.holdings.degree_here(),
            self.is_chosen,
        )
        self.out.append(Send(position, answer))

    def propose(self, ballot: int, value: Value) -> bool:
        """Phase 2: a value is proposed under the promised ballot; True as for `complete`."""
        self.machine.change(ParticipantCause.PROPOSED)
        self.proposal = ballot, value
        return self.complete()

    def complete(self) -> bool:
        """Accept what is proposed, if all of its cut is here; True if the coordinator is this member."""
        if self.proposal is None or not self.holdings.has_cut(self.proposal[1].cut):
            return False
        self.machine.change(ParticipantCause.CUT_HELD)
        before, self.accepted, self.proposal = self.accepted, self.proposal, None
        self.is_chosen &= before is not None and before[1] == self.accepted[1]  # but by a reset
        ballot, _ = self.accepted
        position = ballot & MEMBERS_MAX - 1
        if position == self.known.position:
            return True
        self.out.append(Send(position, Accept(ballot)))
        return False

    def notified_chosen(self, ballot: int) -> None:
        """The coordinator says that enough have accepted what was proposed under that ballot."""
        if self.accepted is not None and self.accepted[0] == ballot:
            self.is_chosen = True

    def repeat(self, position: int) -> None:
        """The coordinator at `position` can be reached anew: what was sent to it may be lost."""
        if self.promised and self.coordinator == position:
            self.out.append(Freeze())  # and the report is sent once more
            if self.accepted is not None and self.accepted[0] == self.promised:
                self.out.append(Send(position, Accept(self.promised)))

    def is_out_by_notice(self) -> bool:
        """Whether this member is out by another one's word.

        One that leaves has the outcome from the member whose ballot it has promised, which asks it before it decides,
        and sends it all that comes before the view without it. Those that are in that view may be faster, as on a
        machine that is busy: that it has left is no expulsion. Their word counts if that member is out itself, as
        seen here, or has nothing better to say.
        """
        notice, view = self.notice, self.known.view
        if notice is None or view is None:
            return False
        if not notice.leaves or not self.promised or self.coordinator == self.known.position:
            return True
        coordinator = view.members[self.coordinator].incarnation
        is_sender = notice.sender is not None and notice.sender.incarnation == coordinator
        return is_sender or self.known.is_out(coordinator)

    def notified_blocked(self, blocked: Blocked) -> None:
        """The coordinator says that those that have reported may not go on."""
        assert self.known.view is not None
        missing = tuple(
            member for member in self.known.view.members if member.incarnation in blocked.missing
        )
        self.out.append(ReportBlocked(missing, shown(blocked.rule)))

    def installed(self) -> None:
        """A new view: ballots begin anew."""
        self.machine.change(ParticipantCause.INSTALLED)
        self.promised = self.highest = 0
        self.accepted = self.proposal = None
        self.is_chosen = False
        self.deferred = {}
        self.notice = None
