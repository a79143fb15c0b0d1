"""One ballot, as its leader has it: which members have promised, what is proposed, which have accepted (H12)."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from orcalike.transport.degree import number_of
from orcalike.transport.membership.messages import Value
from orcalike.transport.membership.quorum import Ruling, State, rule_on
from orcalike.transport.view import View


@dataclass(frozen=True, slots=True)
class Report:
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


@dataclass(slots=True)
class Attempt:
    """A ballot under way, at its leader."""

    ballot: int
    view: View
    """The view that it is to end."""
    mark: bytes = b""
    """The leader's own report: what is not in it, members send along with theirs."""
    reports: dict[int, Report] = field(default_factory=dict)
    """By place."""
    value: Value | None = None
    accepts: set[int] = field(default_factory=set)
    """Places."""
    reset: int = 0
    """The program has said to go on with so many members (A05); 0 where it has not."""
    said: Ruling | None = None
    """Why it cannot go on, as the others were told."""

    def note(self, place: int, report: Report) -> None:
        """A member reports; once more, perhaps: its state is whole now, or it saw a member die."""
        known = self.reports.setdefault(place, report)
        state, vouched = max(known.state, report.state), known.vouched | report.vouched
        if (state, vouched) != (known.state, known.vouched):
            self.reports[place] = replace(known, state=state, vouched=vouched)

    def ruling(self, places: AbstractSet[int], dead: AbstractSet[int]) -> Ruling:
        """Whether the members at these places may form the next view."""
        members = self.view.members
        degrees = [number_of(it.degree, len(members)) for it in self.reports.values() if it.degree]
        present = {members[place].incarnation for place in places}
        states = {members[place].incarnation: it.state for place, it in self.reports.items()}
        return rule_on(
            self.view,
            present,
            dead,
            min(degrees, default=0),
            states,
            sure=self._is_sure(places, present),
        )

    def _is_sure(self, places: AbstractSet[int], present: AbstractSet[int]) -> bool:
        """Whether a member there vouches for all that are not."""
        absent = {member.incarnation for member in self.view.members} - present
        return any(absent <= self.reports[place].vouched for place in places)

    def loses_state(self, leaving: AbstractSet[int], dead: AbstractSet[int]) -> bool:
        """Whether all that have the state leave, while another that has it may live."""
        for place, member in enumerate(self.view.members):
            report = self.reports.get(place)
            if report is not None and report.state and member.incarnation not in leaving | dead:
                return False
        return not self.reset and any(
            place not in self.reports and not member.witness and member.incarnation not in dead
            for place, member in enumerate(self.view.members)
        )

    def bound_to(self) -> Value | None:
        """The value that may have been decided already: of the highest ballot accepted."""
        accepted = [report.accepted for report in self.reports.values() if report.accepted]
        return max(accepted, key=_ballot_of)[1] if accepted else None

    def may_propose(self, dead: AbstractSet[int]) -> Ruling:
        """Whether enough have promised; where they are by the rule, it takes no reset to go on."""
        ruling = self.ruling(self.reports.keys(), dead)
        if ruling.granted or not self.reset:
            self.reset = 0
            return ruling
        enough = len(self.reports) >= self.reset
        whole = bool(self.with_state(dead))
        return Ruling(enough and whole, f"reset asks for {self.reset} members, one with the state")

    def with_state(self, dead: AbstractSet[int], least: State = State.EMPTY) -> set[int]:
        """The members that have reported to have the state, and have not died since."""
        members, reports = self.view.members, self.reports.items()
        return {members[place].incarnation for place, it in reports if it.state >= least} - dead

    def without_state(self) -> set[int]:
        """The members that have reported to be still without the state."""
        members, reports = self.view.members, self.reports.items()
        waiting = {members[place] for place, it in reports if not it.state}
        return {member.incarnation for member in waiting if not member.witness}

    def is_decided(self, dead: AbstractSet[int]) -> bool:
        """Whether enough have accepted: after a reset, all that promised."""
        if self.reset:
            return self.accepts >= self.reports.keys()
        return self.ruling(self.accepts, dead).granted

    def awaited(self, out: Callable[[int], bool]) -> bool:
        """Whether a report is still to come from a member that is not `out`."""
        return any(
            place not in self.reports and not out(member.incarnation)
            for place, member in enumerate(self.view.members)
        )


def _ballot_of(accepted: tuple[int, Value]) -> int:
    return accepted[0]
