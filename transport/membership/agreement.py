"""The agreement on views: consensus among the members of a view on the one after it (H12, H62, H64).

Every change of view goes this way: crashes, joins and leaves; all that ask at once change in one
view. The oldest member that is not suspected leads, elected without a message.

1. *Flush*: the leader sends FLUSH with a ballot. A member that promises it stops numbering, acknowledging
   and delivering the view's packets, sends the leader what it holds and the leader lacks (SHIP),
   and says what it holds and which value it accepted last (FLUSH_OK).
2. *View*: from the reports comes the cut, the packets that belong to the old view; a value that
   may have been decided before is carried on. The leader sends each what it lacks and proposes
   (PROPOSE); a member accepts only when it holds the whole cut (ACCEPT). When the quorum of H1 has
   accepted, the view is decided; INSTALL tells the old members and the new.

If the leader fails, the next one begins again with a higher ballot. A member heeds a leader only
when it suspects all older ones too, so that two that cannot reach each other do not outbid each
other. This module knows no packets: what is held, and what the cut is, it asks its `Port`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.attempt import Attempt, Report
from orcalike.transport.membership.messages import (
    Accept,
    Blocked,
    ControlMessage,
    Denied,
    Expelled,
    Flush,
    FlushOk,
    Install,
    Lost,
    Promised,
    Propose,
    Ship,
    Value,
)
from orcalike.transport.membership.quorum import Ruling, State
from orcalike.transport.view import (
    BALLOT_BITS,
    PLACE_BITS,
    Member,
    View,
    next_lineage,
)
from orcalike.transport.wire.control import shown

UNDER_WAY = "the group is not blocked: a change of view is under way"
"""Why a reset cannot be done now, and may be in a moment."""

OLDEST_WATCHED = 4
"""So many of the oldest are watched by all: the next leader is known as soon as one fails."""

ROUNDS = 1 << BALLOT_BITS - PLACE_BITS
"""How many rounds a view has."""


class Port(Protocol):
    """What the agreement needs of the layer that it works for."""

    def tell(self, place: int, message: ControlMessage) -> None:
        """Send a control message to the member at `place`."""

    def contact_with(self, address: str, message: ControlMessage) -> None:
        """Send a control message to an endpoint outside the view."""

    def left_out(self, member: Member) -> None:
        """This member may live, and must be told so that a view goes on without it."""

    def freeze(self) -> None:
        """Freeze the view; `report` is called with what is held."""

    def missing(self, report: bytes) -> list[bytes]:
        """The packets held here that the member that reported so lacks."""

    def check(self, report: bytes | None, cut: bytes | None) -> None:
        """Raises ProtocolError where a member cannot have reported so, or made that cut."""

    def supply(self, piece: bytes) -> None:
        """A packet that was missing here."""

    def cut_of(self, reports: dict[int, bytes], ends: bool) -> bytes:
        """The cut that follows from the members' reports; `ends`: no state goes on to the view."""

    def has_cut(self, cut: bytes) -> bool:
        """Whether all of the cut is here; else `complete` is called when it is."""

    def has_state(self) -> int:
        """What is known here of the application's state, a `State`."""

    def grant(self, granting: bool) -> None:
        """Grant leases to the others of the view from here on, or no more."""

    def lease_is_over(self, incarnation: int) -> bool:
        """Whether a decision needs that member no more; else `proceed` is called when it is so."""

    def degree_here(self) -> int:
        """R, as far as it is known here (H2)."""

    def install(self, view: View, cut: bytes) -> None:
        """Make `view` the view, after the cut."""

    def blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        """No primary view can be formed now, by which rule, and which members are waited for."""

    def mark(self, step: str) -> None:
        """The protocol passes a failpoint."""


class Agreement:
    """One member's part in the changes of view; its leader's part too, while it leads."""

    def __init__(self, port: Port, me: Member, options: dict[str, Any]) -> None:
        self.port = port
        self.me = me
        self.options = options
        self.view: View | None = None
        self.promised = 0
        """The highest ballot that was promised in this view."""
        self.accepted: tuple[int, Value] | None = None
        self.proposal: tuple[int, Value] | None = None
        """What is to be accepted as soon as its whole cut is here."""
        self.attempt: Attempt | None = None
        """This member's own ballot, while it leads one."""
        self.last: Value | None = None
        """What installed the view that is in force."""
        self.suspects: set[int] = set()
        self.dead: set[int] = set()
        """Certainly (H13): no member has to wait for them."""
        self.vouched: set[int] = set()
        """Those of them that decided nothing without this member's acceptance (`lease`)."""
        self.expelled: set[int] = set()
        """Too slow for the layers above, or they lie: out at the next view."""
        self.hung: set[int] = set()
        """They did not answer for `slow_timeout`, as leaders or in a ballot, until they do."""
        self.unsettled = False
        """A link broke, or another member's ballot hangs: a new view must clear that."""
        self.joining: dict[int, Member] = {}
        self.leaving: set[int] = set()
        self._deferred: dict[int, tuple[int, bytes]] = {}
        """The last FLUSH of each place whose time has not come: its ballot and mark."""
        self._highest = 0
        """The highest ballot that was heard of."""
        self._leader_mark = b""

    @property
    def place(self) -> int:
        """This member's place in the view."""
        return self.view.place(self.me.incarnation) if self.view else -1

    @property
    def frozen(self) -> bool:
        """Whether a ballot is under way."""
        return self.promised > 0

    def departs(self, incarnation: int) -> bool:
        """Whether a member is known to be on its way out, so that its link may go down."""
        value = self.proposal or self.accepted
        return value is not None and value[1].view.place(incarnation) < 0

    def is_out(self, incarnation: int) -> bool:
        """Whether no member waits for this one's word."""
        return incarnation in self.suspects | self.dead | self.expelled | self.hung

    @property
    def leader(self) -> int:
        """The place of the oldest member that is not suspected here."""
        assert self.view is not None
        for place, member in enumerate(self.view.members):
            if member.incarnation == self.me.incarnation or not self.is_out(member.incarnation):
                return place
        raise AssertionError("this member is in its view")

    @property
    def waits(self) -> bool:
        """Whether a change of view is due, and another member is to lead it."""
        if self.view is None or self.leader == self.place:
            return False
        return bool(self._deferred) or self._has_reason()

    # What happens to members.

    def ask_join(self, member: Member, options: dict[str, Any]) -> str | None:
        """A process asks to join; returns why not, or None. At the leader only."""
        assert self.view is not None
        asked = {name: value for name, value in options.items() if value is not None}
        known = {name: value for name, value in self.options.items() if value is not None}
        for name, value in asked.items():
            if known.get(name, value) != value:
                return f"config: the group has {name}={known[name]!r}, not {value!r}"
        # A witness has no options of its own: the first joiner's are the group's.
        self.options |= asked | known
        coming = self._coming()
        if len(coming.members) + len(self.joining) >= MEMBERS_MAX:
            return f"the group is full: {MEMBERS_MAX} members"
        if coming.place(member.incarnation) >= 0 or member.incarnation in self.joining:
            return None
        if self.attempt is not None and self.attempt.said is not None:
            return None  # the group is blocked
        for other in (*coming.members, *self.joining.values()):
            if member.rank is None or other.rank != member.rank or other.witness:
                continue
            if not self.is_out(other.incarnation) and other.address != member.address:
                return f"rank {member.rank} is in the group already"
            self.joining.pop(other.incarnation, None)
        self.joining[member.incarnation] = member
        return None

    def ask_leave(self, incarnation: int) -> None:
        """A member asks to leave. At the leader only."""
        if self.view is not None and self._coming().place(incarnation) >= 0:
            self.leaving.add(incarnation)

    def died(self, incarnation: int, *, vouched: bool) -> None:
        """A member is certainly dead; `vouched` if its lease to this one was not over."""
        assert self.view is not None
        self.dead.add(incarnation)
        if not vouched or incarnation in self.vouched:
            return
        self.vouched.add(incarnation)
        coordinator = self.promised & MEMBERS_MAX - 1
        if self.attempt is not None and self.place in self.attempt.reports:
            own = self.attempt.reports[self.place]
            self.attempt.note(self.place, replace(own, vouched=frozenset(self.vouched)))
        elif self.promised and coordinator != self.place:
            self.port.freeze()  # which reports once more

    def suspect(self, incarnations: Iterable[int]) -> None:
        """These are suspected, and no others."""
        self.suspects = set(incarnations)

    def expel_awaited(self) -> None:
        """A member that beats and has not answered for `slow_timeout` is out (F17), unless it answers yet.

        It may, while the group is blocked. If it were out for good here, two would lead in turn.
        """
        attempt = self.attempt
        if attempt is not None and attempt.value is None:
            for place, member in enumerate(attempt.view.members):
                if place not in attempt.reports:
                    self.hung.add(member.incarnation)

    def _coming(self) -> View:
        """The view that is proposed, if one is: a process that is in it already asks in vain again."""
        assert self.view is not None
        proposed = self.attempt is not None and self.attempt.value
        return proposed.view if proposed else self.view

    # The leader.

    def proceed(self) -> None:
        """Something may have changed: begin a ballot, or go on with the one under way."""
        if self.view is None:
            return
        for place in sorted(self._deferred, key=self._deferred.__getitem__, reverse=True):
            if self._heeds(place):
                self.promise(place, *self._deferred.pop(place))
        if self.leader != self.place:
            return
        if self.attempt is None and self._has_reason():
            self._begin()
        elif self.attempt is not None:
            self._go_on()

    def _has_reason(self) -> bool:
        assert self.view is not None
        return (
            bool(self.joining or self.leaving)
            or self.unsettled
            or self.promised > 0
            or any(self.is_out(member.incarnation) for member in self.view.members)
        )

    def _begin(self, reset: int = 0) -> None:
        assert self.view is not None
        round_ = (max(self.promised, self._highest) >> PLACE_BITS) + 1
        if round_ > self._last_round(self.place):
            raise ProtocolError("no ballot is left for this view")
        ballot = round_ << PLACE_BITS | self.place
        self.attempt = Attempt(ballot, self.view, reset=reset)
        self.proposal = None
        self.promised = ballot
        self.port.freeze()  # and `report` sends FLUSH

    def _last_round(self, place: int) -> int:
        """The last round of the leader at `place`: leaders that come later have more of them.

        So a member that lies about ballots takes nothing from those that lead after it.
        """
        assert self.view is not None
        return ROUNDS // 4 + ROUNDS // 2 * (place + 1) // len(self.view.members)

    def _check_ballot(self, ballot: int, leader: int | None) -> None:
        """Raise ProtocolError for a ballot that the leader does not have.

        Without a leader that is heeded, it is one that this member would have to outbid.
        """
        assert self.view is not None
        spare = ROUNDS // 4 // len(self.view.members)
        last = self._last_round(self.place) - spare if leader is None else self._last_round(leader)
        if ballot >> PLACE_BITS > last:
            raise ProtocolError(f"ballot {ballot}, which leaves too few of this view's")

    def _ask(self, place: int) -> None:
        assert self.attempt is not None
        self.port.tell(place, Flush(self.attempt.ballot, self.attempt.mark, tuple(self.dead)))

    def missed(self) -> list[Member]:
        """While the group is blocked: the members that have not reported; else none."""
        attempt = self.attempt
        if attempt is None or attempt.said is None:
            return []
        members = enumerate(attempt.view.members)
        return [member for place, member in members if place not in attempt.reports]

    def ask_again(self) -> None:
        """While the group is blocked: missing members may be there, and in another view.

        A member that had no state when it reported may have it all now.
        """
        attempt = self.attempt
        if attempt is None or attempt.said is None:
            return
        for place, member in enumerate(attempt.view.members):
            report = attempt.reports.get(place)
            if member.incarnation in self.dead or (report is not None and report.state):
                continue
            if place != self.place:
                self._ask(place)
            elif report is not None:
                attempt.note(place, replace(report, state=State(self.port.has_state())))
                self._go_on()

    def again(self, incarnation: int) -> None:
        """A member can be reached anew: repeat to it what it may not have heard."""
        attempt = self.attempt
        place = self.view.place(incarnation) if self.view is not None else -1
        if place < 0 or place == self.place:
            return
        if attempt is None:
            if self.promised and self.promised & MEMBERS_MAX - 1 == place:
                self.port.freeze()  # which reports once more
                if self.accepted is not None and self.accepted[0] == self.promised:
                    self.port.tell(place, Accept(self.promised))
        elif place not in attempt.reports:
            self._ask(place)
        elif attempt.value is not None and place not in attempt.accepts:
            self._propose_to(place)
        if attempt is not None and attempt.said is not None and place in attempt.reports:
            self._tell_blocked(place, attempt.said)

    def _go_on(self) -> None:
        """Propose when all that will report have done so, decide when enough have accepted."""
        attempt = self.attempt
        assert attempt is not None
        if attempt.value is None:
            if attempt.awaited(self.is_out):
                return
            ruling = attempt.may_propose(self.dead)
            if ruling.granted:
                self._propose()
            else:
                self._block(ruling)
        elif attempt.is_decided(self.dead):
            if self._leases_are_over(attempt):
                self._decide()
        else:
            places = attempt.reports.keys() - attempt.accepts
            awaited = [attempt.view.members[place].incarnation for place in sorted(places)]
            if not all(map(self.is_out, awaited)):
                return
            if attempt.reset and not self.dead.isdisjoint(awaited):
                self._give_up()  # one that has promised is dead: by another ballot, without it
                self._begin(attempt.reset)
            else:
                self._block(attempt.ruling(attempt.accepts, self.dead))

    def _leases_are_over(self, attempt: Attempt) -> bool:
        """Whether no member that lives and has not accepted counts on being asked (`lease`)."""
        return bool(attempt.reset) or all(
            place in attempt.accepts
            or member.incarnation in self.dead
            or self.port.lease_is_over(member.incarnation)
            for place, member in enumerate(attempt.view.members)
        )

    def _give_up(self) -> None:
        """This member's own ballot, if it leads one, will not be decided by it."""
        if self.attempt is not None:
            self.attempt = None
            self.port.grant(True)

    def _block(self, ruling: Ruling) -> None:
        assert self.attempt is not None
        if ruling == self.attempt.said:
            return
        self.attempt.said = ruling
        self.joining = {}  # those that live ask again, and those that die meanwhile do not count later
        for place in self.attempt.reports:
            if place != self.place:
                self._tell_blocked(place, ruling)
        self.port.blocked(ruling.missing, ruling.rule)

    def _tell_blocked(self, place: int, ruling: Ruling) -> None:
        missing = tuple(member.incarnation for member in ruling.missing)
        self.port.tell(place, Blocked(missing, ruling.rule))

    def _propose(self) -> None:
        attempt = self.attempt
        assert attempt is not None
        self.port.mark("V5")
        self.port.grant(False)
        bound = None if attempt.reset else attempt.bound_to()
        # Processes that asked until now come along; later ones wait for the change after this one.
        attempt.value = bound or self._new_value(attempt)
        for place in attempt.reports:
            if place != self.place:
                self._propose_to(place)
        self.port.mark("V6")
        self._take_proposal(attempt.ballot, attempt.value)

    def _new_value(self, attempt: Attempt) -> Value:
        """The next view, and the packets before it.

        Where no member with state goes on, what is tentative ends with the state that it was for.
        """
        view = self._next_view(attempt)
        staying = {member.incarnation for member in view.members if not member.witness}
        ends = not staying & attempt.with_state(self.dead)
        held = {place: report.held for place, report in attempt.reports.items()}
        return Value(view, self.port.cut_of(held, ends))

    def _propose_to(self, place: int) -> None:
        attempt = self.attempt
        assert attempt is not None
        assert attempt.value is not None
        self._ship_to(place)
        self.port.tell(place, Propose(attempt.ballot, attempt.value))

    def _ship_to(self, place: int) -> None:
        """Send what that member lacks of the cut."""
        attempt = self.attempt
        assert attempt is not None
        for piece in self.port.missing(attempt.reports[place].held):
            self.port.tell(place, Ship(piece))

    def _next_view(self, attempt: Attempt) -> View:
        view = attempt.view
        staying = [view.members[place] for place in sorted(attempt.reports)]
        loses = attempt.loses_state(self.leaving, self.dead)
        if not loses and all(member.incarnation in self.leaving for member in staying):
            self._turn_away()
        kept = self._last_with_state(attempt, loses=loses)
        gone = (self.leaving | self.expelled | self.dead) - kept
        if attempt.reset and not attempt.with_state(self.dead, State.WHOLE):
            gone |= attempt.without_state()  # they begin anew, with the others
        members = [member for member in staying if member.incarnation not in gone]
        ranks = {member.rank for member in members}
        joining, self.leaving = list(self.joining.values()), set()
        free = (rank for rank in range(MEMBERS_MAX) if rank not in ranks)
        asked = {member.rank for member in joining}
        self.joining = {}
        for member in joining:
            if member.rank is None and not member.witness:
                rank = next(rank for rank in free if rank not in asked)
                member = Member(member.address, member.incarnation, rank)
            elif member.rank is not None and member.rank in ranks:
                self.joining[member.incarnation] = member  # when its predecessor is out
                continue
            members.append(member)
        lineage = next_lineage(view.identity, attempt.ballot) if attempt.reset else view.lineage
        return View(lineage, view.number + 1, attempt.ballot, tuple(members), follows=view.identity)

    def _last_with_state(self, attempt: Attempt, *, loses: bool) -> set[int]:
        """Members that may not go yet: no other has the state, and one needs it.

        Some join, or have not got it all. Or a member is not there: it is put out of the view first.
        """
        witnesses = {member.incarnation for member in attempt.view.members if member.witness}
        having = attempt.with_state(self.dead) - witnesses
        if not having <= self.leaving | self.expelled:
            return set()
        joins = any(not member.witness for member in self.joining.values())
        needed = loses or joins or not attempt.without_state() <= self.leaving | self.dead
        return having if needed else having - self.leaving

    def _turn_away(self) -> None:
        """All leave at once: no member is left that could give a joiner its state."""
        for member in self.joining.values():
            self.port.contact_with(member.address, Denied("the group has ended"))
        self.joining = {}

    def _decide(self) -> None:
        attempt = self.attempt
        assert attempt is not None
        assert attempt.value is not None
        self.port.mark("V7")
        view, cut = attempt.value
        self._tell_dropped(view)
        for place, member in enumerate(attempt.view.members):
            # A value that was carried on may have members that did not promise this ballot.
            reported = place in attempt.reports
            if place == self.place or not (reported or view.place(member.incarnation) >= 0):
                continue
            self.port.tell(place, Install(view, cut))
        self.tell_joiners(attempt.view, attempt.value)
        self.port.mark("V8")
        self.port.install(view, cut)

    def _tell_dropped(self, view: View) -> None:
        """Before new members are let in, those that are left out must know (H13)."""
        attempt = self.attempt
        assert attempt is not None
        for place, member in enumerate(attempt.view.members):
            out = view.place(member.incarnation) < 0 and member.incarnation not in self.dead
            if out and (place not in attempt.reports or member.incarnation in self.expelled):
                self.port.contact_with(member.address, Expelled(view, member.incarnation))
                self.port.left_out(member)

    def tell_joiners(self, before: View, value: Value) -> None:
        """Tell members that are new in a view what they are in."""
        for member in value.view.members:
            if before.place(member.incarnation) < 0 and member.incarnation != self.me.incarnation:
                self.port.contact_with(member.address, Install(value.view, value.cut))

    def reset(self, minimum: int) -> str | None:
        """Go on with at least `minimum` members, on the program's word; returns why not (A05)."""
        attempt = self.attempt
        if self.view is None or self.leader != self.place or attempt is None:
            return "the group is not blocked"
        if attempt.said is None:
            return UNDER_WAY
        if len(attempt.reports) < minimum:
            return f"{len(attempt.reports)} members are there, {minimum} are asked for"
        if not attempt.with_state(self.dead):
            return "no member that is there has the whole state"
        self._give_up()
        self._begin(reset=max(minimum, 1))
        return None

    # What every member does.

    def _heeds(self, place: int) -> bool:
        """Whether a leader at `place` is in its right: all older ones are out, as seen here."""
        assert self.view is not None
        return all(
            self.is_out(member.incarnation)
            for member in self.view.members[: min(place, OLDEST_WATCHED)]
        )

    def promise(self, place: int, ballot: int, mark: bytes) -> None:
        """Phase 1: freeze under this ballot; what is held follows."""
        if ballot < self.promised:
            self.port.tell(place, Promised(self.promised))
            return
        if ballot != self.promised:
            self._give_up()
            self.proposal = None
        self.promised = ballot
        self._leader_mark = mark
        self.port.freeze()

    def report(self, held: bytes) -> None:
        """What is held here, for the leader."""
        assert self.view is not None
        place = self.promised & MEMBERS_MAX - 1
        if place != self.place:
            self._report_to(place, held)
            return
        attempt = self.attempt
        assert attempt is not None
        attempt.mark = held
        state, vouched = State(self.port.has_state()), frozenset(self.vouched)
        degree = self.port.degree_here()
        attempt.reports[place] = Report(held, self.accepted, state, vouched, degree)
        for other, member in enumerate(self.view.members):
            if other != place and member.incarnation not in self.dead:
                self._ask(other)
        self.port.mark("V2")
        self._go_on()

    def _report_to(self, place: int, held: bytes) -> None:
        for piece in self.port.missing(self._leader_mark):
            self.port.tell(place, Ship(piece))
        self.port.mark("V3")
        state, degree = State(self.port.has_state()), self.port.degree_here()
        dead, vouched = tuple(self.dead), tuple(self.vouched)
        answer = FlushOk(self.promised, held, self.accepted, dead, state, vouched, degree)
        self.port.tell(place, answer)

    def _take_proposal(self, ballot: int, value: Value) -> None:
        self.proposal = ballot, value
        self.complete()

    def complete(self) -> None:
        """Phase 2: all of the proposed cut is here, so accept."""
        if self.proposal is None or not self.port.has_cut(self.proposal[1].cut):
            return
        self.accepted, self.proposal = self.proposal, None
        ballot, _ = self.accepted
        place = ballot & MEMBERS_MAX - 1
        if place != self.place:
            self.port.tell(place, Accept(ballot))
        elif self.attempt is not None and self.attempt.ballot == ballot:
            self.attempt.accepts.add(place)
            self._go_on()

    def installed(self, value: Value) -> None:
        """A new view: ballots begin anew."""
        before, leader = self.view, self.attempt is not None
        present = {member.incarnation for member in value.view.members}
        self.view = value.view
        self.last = value
        self.promised = self._highest = 0
        self.accepted = self.proposal = self.attempt = None
        self._deferred = {}
        self.unsettled = False
        self.leaving = set()  # a member that still wants to, and may, asks again
        self.expelled = set()
        self.hung = set()
        self.suspects &= present
        self.dead &= present
        self.vouched = set()
        self.joining = {inc: joiner for inc, joiner in self.joining.items() if inc not in present}
        if before is not None and not leader and self.place == 0:
            # The old leader may have ended before they had its word.
            self.tell_joiners(before, value)

    def receive(self, place: int, message: ControlMessage) -> None:
        """A control message of the member at `place`; raises ProtocolError if it cannot be so."""
        match message:
            case Flush(ballot=ballot, mark=mark) if ballot & MEMBERS_MAX - 1 == place:
                self.port.check(mark, None)
                self._note_dead(message.dead)
                self._flush(place, ballot, mark)
            case Ship(piece=piece, view=None):
                self.port.supply(piece)
            case FlushOk():
                self._reported(place, message)
            case Promised(ballot=ballot):
                self._check_ballot(ballot, None)
                self._outbid(ballot)
            case Propose(ballot=ballot, value=value):
                self._proposed(place, ballot, value)
            case Accept(ballot=ballot):
                if self.attempt is not None and self.attempt.ballot == ballot:
                    self.attempt.accepts.add(place)
                    self._go_on()
            case Blocked(missing=missing, rule=rule):
                self._told_blocked(missing, rule)
            case Lost():
                self.unsettled = True
                self.proceed()
            case _:
                raise ProtocolError(f"{message.kind} out of place")

    def _flush(self, place: int, ballot: int, mark: bytes) -> None:
        if self._heeds(place):
            self._check_ballot(ballot, place)
            self._deferred.pop(place, None)
            assert self.view is not None
            self.hung.discard(self.view.members[place].incarnation)
            self.promise(place, ballot, mark)
            return
        self._check_ballot(ballot, None)
        self._deferred[place] = ballot, mark
        self._highest = max(self._highest, ballot)
        if self.attempt is not None and self.attempt.ballot < ballot:
            self._give_up()  # that one will not promise it any more
        self.unsettled = True
        self.proceed()

    def _reported(self, place: int, message: FlushOk) -> None:
        self.port.check(message.held, None)
        self._note_dead(message.dead)
        if message.accepted is not None:
            self.port.check(None, message.accepted[1].cut)
        attempt = self.attempt
        if attempt is None or attempt.ballot != message.ballot:
            return
        report = Report(
            message.held,
            message.accepted,
            message.state,
            frozenset(message.vouched),
            message.degree,
        )
        first, said = place not in attempt.reports, attempt.said
        attempt.note(place, report)
        self.hung.discard(attempt.view.members[place].incarnation)
        self.port.mark("V4")
        if attempt.value is not None and place not in attempt.accepts:
            self._propose_to(place)
        self._go_on()
        if first and said is not None and self.attempt is attempt and attempt.said is said:
            self._tell_blocked(place, said)

    def _note_dead(self, dead: tuple[int, ...]) -> None:
        if self.view is not None:
            known = {member.incarnation for member in self.view.members}
            self.dead |= set(dead) & known - {self.me.incarnation}

    def _outbid(self, ballot: int) -> None:
        """A member has promised a higher ballot than this member's own."""
        self._highest = max(self._highest, ballot)
        if self.attempt is not None and self.attempt.ballot < ballot:
            self._give_up()
            self.proceed()

    def _proposed(self, place: int, ballot: int, value: Value) -> None:
        assert self.view is not None
        self.port.check(None, value.cut)
        view = value.view
        follows = view.follows == self.view.identity and view.number == self.view.number + 1
        if ballot & MEMBERS_MAX - 1 != place or not follows:
            raise ProtocolError(f"it proposed {view}, which does not come next")
        if ballot == self.promised:
            self._take_proposal(ballot, value)
        elif ballot < self.promised:
            self.port.tell(place, Promised(self.promised))

    def _told_blocked(self, missing: tuple[int, ...], rule: str) -> None:
        assert self.view is not None
        members = tuple(member for member in self.view.members if member.incarnation in missing)
        self.port.blocked(members, shown(rule))
