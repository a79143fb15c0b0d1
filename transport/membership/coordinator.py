"""What the member does that leads a change of view: it collects reports, proposes a value, and decides.

It is a participant of its own ballot, too, and tells that part of itself without a message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from orcalike.transport.application_state import State
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.ballot import Ballot, Report, last_round
from orcalike.transport.membership.effects import (
    Contact,
    Effect,
    Grant,
    InstallView,
    Mark,
    ReportBlocked,
    Seek,
    Send,
    Wake,
)
from orcalike.transport.membership.knowledge import Knowledge
from orcalike.transport.membership.lease import Leases
from orcalike.transport.membership.messages import (
    Blocked,
    Chosen,
    Denied,
    Expelled,
    Flush,
    FlushOk,
    Install,
    Propose,
    Ship,
    Value,
)
from orcalike.transport.membership.next_view import next_view
from orcalike.transport.membership.participant import Participant
from orcalike.transport.membership.quorum import Ruling
from orcalike.transport.membership.state import (
    COORDINATOR,
    CoordinatorCause,
    CoordinatorState,
    Machine,
)
from orcalike.transport.view import LINEAGES_MAX, POSITION_BITS, Member, View, resets_of
from orcalike.transport.wording import counted

if TYPE_CHECKING:
    from orcalike.transport.membership.holdings import Holdings

NOT_BLOCKED = "the group is not blocked"
UNDER_WAY = f"{NOT_BLOCKED}: a change of view is under way"
"""Why a reset cannot be done now, and may be in a moment."""


class Coordinator:
    """One member's own ballots, and those that it is to let in and out."""

    def __init__(
        self,
        known: Knowledge,
        participant: Participant,
        leases: Leases,
        options: dict[str, Any],
        out: list[Effect],
    ) -> None:
        self.known = known
        self.participant = participant
        self.holdings: Holdings = participant.holdings
        self.leases = leases
        self.options = options
        self.out = out
        self.now = 0
        """The time of the step, ns."""
        self.machine = Machine("coordinator", CoordinatorState.IDLE, COORDINATOR, out)
        self.ballot: Ballot | None = None
        """This member's own ballot, while it leads one."""
        self.grants = Grant(False)
        """Whether leases are granted to the others, and to which not."""
        self.joining: dict[int, Member] = {}
        self.leaving: set[int] = set()

    # Members that come and go.

    def ask_join(self, member: Member, options: dict[str, Any]) -> str | None:
        """A process asks to join; returns why not, or None."""
        asked = {name: value for name, value in options.items() if value is not None}
        known = {name: value for name, value in self.options.items() if value is not None}
        for name, value in asked.items():
            if known.get(name, value) != value:
                return f"config: the group has {name}={known[name]!r}, not {value!r}"
        coming = self.coming()
        if len(coming.members) + len(self.joining) >= MEMBERS_MAX:
            return f"the group is full: {MEMBERS_MAX} members"
        if coming.position(member.incarnation) >= 0 or member.incarnation in self.joining:
            return None
        if self.ballot is not None and self.ballot.refusal is not None:
            return None  # the group is blocked
        for other in (*coming.members, *self.joining.values()):
            if member.rank is None or other.rank != member.rank or other.witness:
                continue
            if not self.known.is_out(other.incarnation) and other.address != member.address:
                return f"rank {member.rank} is in the group already"
            self.joining.pop(other.incarnation, None)
        self.joining[member.incarnation] = member
        # A witness has no options of its own: those of the first joiner that is let in are the group's.
        self.options |= asked | known
        return None

    def ask_leave(self, incarnation: int) -> None:
        """A member asks to leave."""
        if self.known.view is not None and self.coming().position(incarnation) >= 0:
            self.leaving.add(incarnation)

    def coming(self) -> View:
        """The view that is proposed, if one is: a process that is in it already asks in vain again."""
        assert self.known.view is not None
        proposed = self.ballot is not None and self.ballot.value
        return proposed.view if proposed else self.known.view

    # A ballot.

    def begin(self, reset: int = 0) -> None:
        """Begin a ballot higher than all that are known; FLUSH follows the own report."""
        view, participant = self.known.view, self.participant
        assert view is not None
        round_ = (max(participant.promised, participant.highest) >> POSITION_BITS) + 1
        if round_ > last_round(view, self.known.position):
            raise ProtocolError("no ballot is left for this view")
        number = round_ << POSITION_BITS | self.known.position
        self.machine.change(CoordinatorCause.BEGUN)
        self.ballot = Ballot(number, view, reset=reset)
        self.notify_newcomers()
        participant.promise_own(number)

    def notify_newcomers(self) -> None:
        """What they are in: the member that was to tell them may have ended, and all wait for their reports."""
        assert self.known.last is not None
        for member in self.known.newcomers:
            if member.incarnation not in self.known.dead:
                self.out.append(Contact(member.address, Install(*self.known.last)))
        self.known.newcomers = ()

    def flush(self, held: bytes) -> None:
        """Phase 1: this member holds that much; ask the others."""
        ballot, position = self.ballot, self.known.position
        assert ballot is not None
        ballot.mark = held
        ballot.reports[position] = Report(
            held,
            self.participant.accepted,
            State(self.holdings.has_state()),
            frozenset(self.known.vouched),
            self.holdings.degree_here(),
            self.participant.is_chosen,
        )
        for other, member in enumerate(ballot.view.members):
            if other != position and member.incarnation not in self.known.dead:
                self._ask(other)
        self.out.append(Mark("V2"))
        self.go_on()

    def _ask(self, position: int) -> None:
        assert self.ballot is not None
        if self.known.position not in self.ballot.reports:
            return  # what this member holds goes along, and is not known yet
        flush = Flush(self.ballot.number, self.ballot.mark, tuple(self.known.dead))
        self.out.append(Send(position, flush))

    def reported(self, position: int, message: FlushOk) -> None:
        """A member has promised, and says what it holds."""
        ballot = self.ballot
        if ballot is None or ballot.number != message.ballot:
            return
        first, refusal = position not in ballot.reports, ballot.refusal
        ballot.note(position, Report.of(message))
        self.known.hung.discard(ballot.view.members[position].incarnation)
        self.out.append(Mark("V4"))
        if ballot.value is not None and position not in ballot.accepts:
            self._propose_to(position)
        self.go_on()
        if self.machine.state is CoordinatorState.DECIDED or self.ballot is not ballot:
            return
        if first and refusal is not None and ballot.refusal is refusal:
            self._notify_blocked(position, refusal)

    def accept(self, position: int, number: int) -> None:
        """A member has accepted what was proposed under a ballot; raises ProtocolError if none was proposed to it."""
        ballot = self.ballot
        if ballot is None or ballot.number != number:
            return
        if ballot.value is None or position not in ballot.reports:
            raise ProtocolError(f"position {position} accepts what was not proposed to it")
        ballot.accepts.add(position)
        self.go_on()

    def go_on(self) -> None:
        """Propose when all that will report have done so, decide when enough have accepted."""
        ballot = self.ballot
        if ballot is None or self.machine.state is CoordinatorState.DECIDED:
            return
        if ballot.value is None:
            if ballot.awaited(self.known.is_out):
                return
            ruling = ballot.may_propose(self.known.dead)
            if ruling.granted:
                self._propose()
            else:
                self._block(ruling)
        elif ballot.is_decided(self.known.dead):
            if self._leases_are_over(ballot):
                self._decide()
        else:
            self._await_acceptances(ballot)

    def _await_acceptances(self, ballot: Ballot) -> None:
        positions = ballot.reports.keys() - ballot.accepts
        awaited = [ballot.view.members[position].incarnation for position in sorted(positions)]
        if not all(map(self.known.is_out, awaited)):
            return
        if ballot.reset and not self.known.dead.isdisjoint(awaited):
            self.give_up()  # one that has promised is dead: by another ballot, without it
            self.begin(ballot.reset)
        else:
            self._block(ballot.ruling(ballot.accepts, self.known.dead))

    def give_up(self) -> None:
        """This member's own ballot, if it leads one, will not be decided by it."""
        if self.ballot is not None:
            self.machine.change(CoordinatorCause.GIVEN_UP)
            self.ballot = None
            self._grant(True)

    def outbid(self, number: int) -> bool:
        """A higher ballot than this member's own is known; True if that one is given up."""
        if self.ballot is None or self.ballot.number >= number:
            return False
        self.give_up()
        return True

    # Phase 2.

    def _propose(self) -> None:
        ballot = self.ballot
        assert ballot is not None
        self.machine.change(CoordinatorCause.GRANTED)
        self.out.append(Mark("V5"))
        self._grant(False)
        bound = None if ballot.reset else ballot.bound_to()
        # Processes that asked until now come along; later ones wait for the change after this one.
        ballot.value = bound or self._new_value(ballot)
        for position in ballot.reports:
            if position != self.known.position:
                self._propose_to(position)
        self.out.append(Mark("V6"))
        if self.participant.propose(ballot.number, ballot.value):
            self.accept(self.known.position, ballot.number)

    def _new_value(self, ballot: Ballot) -> Value:
        """The next view, and the packets before it.

        Where no member with state goes on, what is tentative ends with the state that it was for. A witness
        that keeps the state counts: one that does not has it only where there is none. So does a member
        that is behind: it has what others have reported before the view begins.
        """
        plan = next_view(
            ballot, self.known.dead, self.known.expelled, self.leaving, self.joining.values()
        )
        for member in plan.denied:
            self.out.append(Contact(member.address, Denied("the group has ended")))
        self.leaving = set()
        self.joining = {member.incarnation: member for member in plan.waiting}
        having = ballot.with_state(self.known.dead, State.BEHIND)
        ends = having.isdisjoint(each.incarnation for each in plan.view.members)
        held = {position: report.held for position, report in ballot.reports.items()}
        return Value(plan.view, self.holdings.cut_of(held, plan.view, ends))

    def _propose_to(self, position: int) -> None:
        """What a member lacks of the cut, and the value."""
        ballot = self.ballot
        assert ballot is not None
        assert ballot.value is not None
        self._ship_to(position, ballot.reports[position])
        self.out.append(Send(position, Propose(ballot.number, ballot.value)))

    def _ship_to(self, position: int, report: Report) -> None:
        """What is held here, by others' reports too, and was not there."""
        for piece in self.holdings.missing(report.held):
            self.out.append(Send(position, Ship(piece)))

    def _not_accepted(self, ballot: Ballot) -> list[int]:
        """The members that may live, and have not accepted."""
        return [
            member.incarnation
            for position, member in enumerate(ballot.view.members)
            if position not in ballot.accepts and member.incarnation not in self.known.dead
        ]

    def _leases_are_over(self, ballot: Ballot) -> bool:
        """Whether no member that lives and has not accepted counts on being asked (`lease`).

        If it is not so for long, this member may end meanwhile: the others go on without it (`_wait_with`).
        """
        left_out = [] if ballot.reset else self._not_accepted(ballot)
        are_over = all(map(self._lease_is_over, left_out))
        if not are_over and self.leases.are_known:
            self._wait_with(ballot, left_out)
        return are_over

    def _wait_with(self, ballot: Ballot, left_out: list[int]) -> None:
        """Have those that have accepted know that they are enough, and grant them leases again.

        This member can decide on nothing else. At first the acceptances of the others may be under way.
        """
        if ballot.enough_at is None:
            ballot.enough_at = self.now
        since = ballot.enough_at + self.leases.grace
        if self.now < since and not all(map(self.known.is_out, left_out)):
            self.out.append(Wake(since))
            return
        for position in sorted(ballot.accepts - ballot.notified):
            ballot.notified.add(position)
            if position == self.known.position:
                self.participant.notified_chosen(ballot.number)
            else:
                self.out.append(Send(position, Chosen(ballot.number)))
        if not self.leases.in_memory and len(ballot.accepts) > 1:
            self._grant(True, left_out)

    def _lease_is_over(self, incarnation: int) -> bool:
        over_at = self.leases.over_at(incarnation)
        if over_at is None:
            return False
        if over_at > self.now:
            self.out.append(Wake(over_at))
        return over_at <= self.now

    def _decide(self) -> None:
        ballot = self.ballot
        assert ballot is not None
        assert ballot.value is not None
        self.machine.change(CoordinatorCause.AGREED)
        if left_out := self._not_accepted(ballot):
            self.holdings.say_alone(tuple(left_out))
        self.out.append(Mark("V7"))
        view, cut = ballot.value
        self._notify_dropped(ballot, view)
        for position, member in enumerate(ballot.view.members):
            # A value that was carried on may have members that did not promise this ballot.
            reported = position in ballot.reports
            if position != self.known.position and (
                reported or view.position(member.incarnation) >= 0
            ):
                self.out.append(Send(position, Install(view, cut)))
        self.notify_joiners(ballot.view, ballot.value)
        self.out.append(Mark("V8"))
        self.out.append(InstallView(view, cut))

    def _notify_dropped(self, ballot: Ballot, view: View) -> None:
        """Before new members are let in, those that are left out must know (H13)."""
        for position, member in enumerate(ballot.view.members):
            out = (
                view.position(member.incarnation) < 0 and member.incarnation not in self.known.dead
            )
            expelled = member.incarnation in self.known.expelled
            if out and (position not in ballot.reports or expelled):
                why = self.known.why_out(member.incarnation)
                self.out.append(Contact(member.address, Expelled(view, member.incarnation, why)))
                self.out.append(Seek(member))

    def notify_joiners(self, before: View, value: Value) -> None:
        """Tell members that are new in a view what they are in."""
        me = self.known.me.incarnation
        for member in value.view.members:
            if before.position(member.incarnation) < 0 and member.incarnation != me:
                self.out.append(Contact(member.address, Install(value.view, value.cut)))

    # Blocked.

    def _block(self, ruling: Ruling) -> None:
        ballot = self.ballot
        assert ballot is not None
        if self._awaits_ends(ballot, ruling):
            return
        self.machine.change(CoordinatorCause.REFUSED)
        if ruling == ballot.refusal:
            return
        ballot.refusal = ruling
        self.joining = {}  # those that live ask again, and those that die meanwhile do not count later
        for position in ballot.reports:
            if position != self.known.position:
                self._notify_blocked(position, ruling)
        self.out.append(ReportBlocked(ruling.missing, ruling.rule))

    def _awaits_ends(self, ballot: Ballot, ruling: Ruling) -> bool:
        """Whether a member that is missing will be seen to end in a moment: then it is not known yet whether the group is blocked.

        Its connections are closed before. The kernel may take long over what else it had, so this has a bound.
        """
        if ballot.refusal is not None or not any(
            self.holdings.is_ending(member.incarnation) for member in ruling.missing
        ):
            return False
        if ballot.ends_by is None:
            ballot.ends_by = self.now + self.leases.span
            self.out.append(Wake(ballot.ends_by))
        return self.now < ballot.ends_by

    def _notify_blocked(self, position: int, ruling: Ruling) -> None:
        missing = tuple(member.incarnation for member in ruling.missing)
        self.out.append(Send(position, Blocked(missing, ruling.rule)))

    def missed(self) -> list[Member]:
        """While the group is blocked: the members that have not reported, or not accepted; else none."""
        ballot = self.ballot
        if ballot is None or ballot.refusal is None:
            return []
        answered = ballot.reports.keys() if ballot.value is None else ballot.accepts
        members = enumerate(ballot.view.members)
        return [member for position, member in members if position not in answered]

    def ask_again(self) -> None:
        """While the group is blocked: missing members may be there, and in another view.

        A member that had no state when it reported may have it all now. One that was behind has it with what
        others hold.
        """
        ballot = self.ballot
        if ballot is None or ballot.refusal is None:
            return
        for position, member in enumerate(ballot.view.members):
            report = ballot.reports.get(position)
            has_all = report is not None and report.state in (State.EMPTY, State.WHOLE)
            if has_all or member.incarnation in self.known.dead:
                continue
            if position != self.known.position:
                if report is not None and report.state is State.BEHIND:
                    self._ship_to(position, report)
                self._ask(position)
            elif report is not None:
                state = State(self.holdings.has_state())
                ballot.note(position, report.replace(state=state))
                self.go_on()
                if self.ballot is not ballot or self.machine.state is CoordinatorState.DECIDED:
                    return

    def repeat(self, position: int) -> None:
        """A member can be reached anew: repeat to it what it may not have received."""
        ballot = self.ballot
        assert ballot is not None
        if position not in ballot.reports:
            self._ask(position)
        elif ballot.value is not None and position not in ballot.accepts:
            self._propose_to(position)
        elif position in ballot.notified:
            self.out.append(Send(position, Chosen(ballot.number)))
        if ballot.refusal is not None and position in ballot.reports:
            self._notify_blocked(position, ballot.refusal)

    def overdue(self) -> None:
        """A member that beats and has not answered for `slow_timeout` is out (F17), unless it answers yet.

        It may, while the group is blocked. If it were out for good here, two would lead in turn.
        """
        ballot = self.ballot
        if ballot is not None and ballot.value is None:
            for position, member in enumerate(ballot.view.members):
                if position not in ballot.reports and position != self.known.position:
                    self.known.hung.add(member.incarnation)

    def reset(self, minimum: int) -> str | None:
        """Go on with at least `minimum` members, on the program's word; returns why not (A05)."""
        ballot = self.ballot
        if self.known.view is None or self.known.leader != self.known.position or ballot is None:
            return NOT_BLOCKED
        if ballot.refusal is None:
            return UNDER_WAY
        if len(ballot.reports) < minimum:
            return f"{counted(len(ballot.reports), 'member')} present, {minimum} asked for"
        if not ballot.with_state(self.known.dead):
            return "no member that is there has the whole state"
        if resets_of(self.known.view.lineage) + 1 >= LINEAGES_MAX:
            return f"it has been reset {LINEAGES_MAX - 1} times, and cannot be once more: make a new group"
        self.give_up()
        self.begin(reset=max(minimum, 1))
        return None

    # Leases, and the view.

    def _grant(self, granting: bool, without: Iterable[int] = ()) -> None:
        grants = Grant(granting, tuple(without))
        if grants != self.grants:
            self.grants = grants
            if not granting:
                self.leases.end(self.now, self._proposed_to())
            self.out.append(grants)

    def _proposed_to(self) -> list[int]:
        if self.ballot is None:
            return []
        members = self.ballot.view.members
        return [members[position].incarnation for position in self.ballot.reports]

    def leases_ended(self, granted: Iterable[tuple[int, int]]) -> bool:
        """The driver says when it last granted leases; True if that was asked for."""
        if not self.grants.granting:
            self.leases.ended(granted)
        return not self.grants.granting

    def installed(self, view: View) -> None:
        """A new view; a member that wanted to leave, and may, asks again."""
        self.machine.change(CoordinatorCause.INSTALLED)
        self.leases.begin(view, self.known.me, self.now)
        self.ballot = None
        self.leaving = set()
        self.joining = {
            incarnation: joiner
            for incarnation, joiner in self.joining.items()
            if view.position(incarnation) < 0
        }

    def grant_anew(self) -> None:
        """Leases of the view that is in force now."""
        self.grants = Grant(False)
        self._grant(True)

    def exited(self) -> None:
        """This member is out of the group."""
        self.machine.change(CoordinatorCause.EXITED)
        self.ballot = None
        self._grant(False)
