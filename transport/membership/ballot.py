"""One ballot, as its coordinator has it: promises, what is proposed, acceptances (H12); and which numbers there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from orcalike.transport.application_state import State
from orcalike.transport.degree import MEMBERS_MAX, number_of
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.messages import FlushOk, Value
from orcalike.transport.membership.quorum import Ruling, rule_on
from orcalike.transport.record import Record
from orcalike.transport.view import BALLOT_BITS, POSITION_BITS, View
from orcalike.transport.wording import counted

ROUNDS = 1 << BALLOT_BITS - POSITION_BITS
"""How many rounds a view has."""


def last_round(view: View, position: int) -> int:
    """The last round of the coordinator at `position`: those that come later have more of them.

    So a member that lies about ballots takes nothing from those that lead after it.
    """
    return ROUNDS // 4 + ROUNDS // 2 * (position + 1) // len(view.members)


def check_ballot(ballot: int, view: View, own: int, leader: int | None) -> None:
    """Raise ProtocolError for a ballot that the leader does not have.

    Without a leader that is accepted, it is one that the member at `own` would have to outbid.
    """
    spare = ROUNDS // 4 // len(view.members)
    last = last_round(view, own) - spare if leader is None else last_round(view, leader)
    if ballot >> POSITION_BITS < 1:
        raise ProtocolError(f"ballot {ballot}, which is of no round")
    if ballot >> POSITION_BITS > last:
        raise ProtocolError(f"ballot {ballot}, which leaves too few of this view's")


class Report(Record):
    """What a member says when it promises a ballot."""

    held: bytes
    """What it holds of the view's packets, in the words of the layer above."""
    accepted: tuple[int, Value] | None = None
    """The last value that it accepted in this view, and under which ballot."""
    state: State = State.WHOLE
    """What it knows of the application's state."""
    vouched: frozenset[int] = frozenset()
    """Incarnations of the dead that decided nothing in this view without its acceptance (`lease`)."""
    degree: int = 0
    """The least degree of 1 or more that it knows of (H2), or 0."""
    chosen: bool = False
    """Whether it knows that enough have accepted that value: no other can be decided on."""

    @classmethod
    def of(cls, message: FlushOk) -> Report:
        """As it was sent."""
        vouched = frozenset(message.vouched)
        return cls(
            message.held, message.accepted, message.state, vouched, message.degree, message.chosen
        )


class Ballot:
    """A ballot under way, at its coordinator."""

    def __init__(self, number: int, view: View, mark: bytes = b"", reset: int = 0) -> None:
        self.number = number
        self.view = view
        """The view that it is to end."""
        self.mark = mark
        """The coordinator's own report: what is not in it, members send along with theirs."""
        self.reports: dict[int, Report] = {}
        """By position."""
        self.value: Value | None = None
        self.accepts: set[int] = set()
        """Positions."""
        self.enough_at: int | None = None
        """Since when there are enough of them, and leases of others are waited out, ns."""
        self.notified: set[int] = set()
        """Those of them that know that there are enough."""
        self.reset = reset
        """The program has said to go on with so many members (A05); 0 if it has not."""
        self.ends_by: int | None = None
        """Until when those that are missing and are at their end are waited for before it is refused, ns."""
        self.refusal: Ruling | None = None
        """Why it cannot go on, as was sent to the others."""

    def note(self, position: int, report: Report) -> None:
        """A member reports; once more, perhaps: its state is whole now, or it saw a member die."""
        known = self.reports.setdefault(position, report)
        more = known.replace(
            state=max(known.state, report.state),
            vouched=known.vouched | report.vouched,
            chosen=known.chosen or report.chosen,
        )
        if more != known:
            self.reports[position] = more

    def note_own(self, vouched: Iterable[int], *, chosen: bool) -> None:
        """The coordinator, if it has reported itself, vouches for these now, or knows that its value is chosen."""
        own = self.number & MEMBERS_MAX - 1
        report = self.reports[own].replace(vouched=frozenset(vouched), chosen=chosen)
        self.note(own, report)

    def ruling(self, positions: AbstractSet[int], dead: AbstractSet[int]) -> Ruling:
        """Whether the members at these positions may form the next view."""
        members = self.view.members
        degrees = [number_of(it.degree, len(members)) for it in self.reports.values() if it.degree]
        present = {members[position].incarnation for position in positions}
        states = {members[each].incarnation: it.state for each, it in self.reports.items()}
        return rule_on(
            self.view,
            present,
            dead,
            min(degrees, default=0),
            states,
            sure=self._is_sure(positions, present),
        )

    def _is_sure(self, positions: AbstractSet[int], present: AbstractSet[int]) -> bool:
        """Whether a member there vouches for all that are not."""
        absent = {member.incarnation for member in self.view.members} - present
        return any(absent <= self.reports[position].vouched for position in positions)

    def loses_state(self, leaving: AbstractSet[int], dead: AbstractSet[int]) -> bool:
        """Whether all that have the state leave, while another that has it may live."""
        for position, member in enumerate(self.view.members):
            report = self.reports.get(position)
            if report is not None and report.state and member.incarnation not in leaving | dead:
                return False
        return not self.reset and any(
            position not in self.reports and not member.witness and member.incarnation not in dead
            for position, member in enumerate(self.view.members)
        )

    def bound_to(self) -> Value | None:
        """The value that may have been decided already: of the highest ballot accepted."""
        accepted = [report.accepted for report in self.reports.values() if report.accepted]
        return max(accepted, key=_ballot_of)[1] if accepted else None

    @property
    def is_chosen(self) -> bool:
        """Whether enough have accepted that value under another ballot, as a member has reported."""
        chosen = [it.accepted[1] for it in self.reports.values() if it.chosen and it.accepted]
        return bool(chosen) and self.bound_to() in chosen

    def may_propose(self, dead: AbstractSet[int]) -> Ruling:
        """Whether enough have promised, or had accepted; if they are by the rule, it takes no reset to go on."""
        ruling = Ruling(True) if self.is_chosen else self.ruling(self.reports.keys(), dead)
        if ruling.granted or not self.reset:
            self.reset = 0
            return ruling
        enough = len(self.reports) >= self.reset
        whole = bool(self.with_state(dead))
        return Ruling(
            enough and whole, f"reset asks for {counted(self.reset, 'member')}, one with the state"
        )

    def with_state(self, dead: AbstractSet[int], least: State = State.EMPTY) -> set[int]:
        """The members that have reported to have the state, and have not died since."""
        members, reports = self.view.members, self.reports.items()
        return {members[each].incarnation for each, it in reports if it.state >= least} - dead

    def without_state(self) -> set[int]:
        """The members that have reported to be still without the state."""
        members, reports = self.view.members, self.reports.items()
        waiting = {members[position] for position, it in reports if not it.state}
        return {member.incarnation for member in waiting if not member.witness}

    def is_decided(self, dead: AbstractSet[int]) -> bool:
        """Whether enough have accepted: after a reset, all that promised."""
        if self.reset:
            return self.accepts >= self.reports.keys()
        own = self.number & MEMBERS_MAX - 1
        return (self.is_chosen and own in self.accepts) or self.ruling(self.accepts, dead).granted

    def awaited(self, out: Callable[[int], bool]) -> bool:
        """Whether a report is still to come from a member that is not `out`."""
        return any(
            position not in self.reports and not out(member.incarnation)
            for position, member in enumerate(self.view.members)
        )


def _ballot_of(accepted: tuple[int, Value]) -> int:
    return accepted[0]
