"""The agreement on views: consensus among the members of a view on the one after it (H12, H62, H64).

Every change of view goes this way: crashes, joins and leaves; all that ask at once change in one
view. The oldest member that is not suspected coordinates, elected without a message.

1. *Flush*: the coordinator sends FLUSH with a ballot. A member that promises it stops numbering, acknowledging
   and delivering the view's packets, sends the coordinator what it holds and the coordinator lacks (SHIP),
   and says what it holds and which value it accepted last (FLUSH_OK).
2. *View*: from the reports comes the cut, the packets that belong to the old view; a value that
   may have been decided before is carried on. The coordinator sends each what it lacks and proposes
   (PROPOSE); a member accepts only when it holds the whole cut (ACCEPT). When the quorum of H1 has
   accepted, the view is decided; INSTALL tells the old members and the new.

If the coordinator fails, the next one begins again with a higher ballot. A member accepts a coordinator
only when it suspects all older ones too, so that two that cannot reach each other do not outbid each
other.

The agreement is a function: `Agreement.step` takes an event and the time, and returns effects
(`events`, `effects`). What each member does is in `participant`, what the coordinator does in
`coordinator`, and the states of both are in `state`; what both know is in `knowledge`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership import events
from orcalike.transport.membership.ballot import check_ballot
from orcalike.transport.membership.coordinator import NOT_BLOCKED, Coordinator
from orcalike.transport.membership.effects import (
    Contact,
    Continue,
    Effect,
    Freeze,
    GoOut,
    Refuse,
    RefuseReset,
    Schedule,
    Send,
    Supply,
)
from orcalike.transport.membership.events import Event
from orcalike.transport.membership.knowledge import Knowledge
from orcalike.transport.membership.lease import Leases
from orcalike.transport.membership.messages import (
    Accept,
    Blocked,
    Chosen,
    ControlMessage,
    Denied,
    Expelled,
    Flush,
    FlushOk,
    Lost,
    Promised,
    Propose,
    Reset,
    ResetFailed,
    Ship,
    Value,
)
from orcalike.transport.membership.participant import Participant
from orcalike.transport.membership.state import ParticipantCause
from orcalike.transport.view import Member, View

if TYPE_CHECKING:
    from orcalike.transport.membership.holdings import Holdings


class Agreement:
    """One member's part in the changes of view; its coordinator's part too, while it leads."""

    def __init__(
        self, holdings: Holdings, me: Member, options: dict[str, Any], leases: Leases
    ) -> None:
        self._out: list[Effect] = []
        self._stepping = False
        self.known = Knowledge(me)
        self.participant = Participant(self.known, holdings, self._out)
        self.coordinator = Coordinator(self.known, self.participant, leases, options, self._out)

    # What others may look at.

    @property
    def view(self) -> View | None:
        """The view that is in force; None outside of any."""
        return self.known.view

    @property
    def position(self) -> int:
        """This member's position in the view."""
        return self.known.position

    @property
    def leader(self) -> int:
        """The position of the oldest member that is not suspected here."""
        return self.known.leader

    @property
    def frozen(self) -> bool:
        """Whether a ballot is under way."""
        return self.participant.promised > 0

    @property
    def waits(self) -> bool:
        """Whether a change of view is due, and another member is to lead it."""
        if self.known.view is None or self.known.leader == self.known.position:
            return False
        return bool(self.participant.deferred) or self._has_reason()

    def proposed(self) -> View | None:
        """The view that may come next, as far as it is known here."""
        value = self.participant.proposal or self.participant.accepted
        return None if value is None else value[1].view

    def missed(self) -> list[Member]:
        """While the group is blocked: the members that have not reported, or not accepted; else none."""
        return self.coordinator.missed()

    # The step.

    def step(self, event: Event, now: int) -> list[Effect]:
        """What follows from `event` at the time `now`, ns: to be carried out in this order."""
        if self._stepping:
            raise RuntimeError("a step of the agreement within another one")
        self._stepping = True
        self.coordinator.now = now
        try:
            self._step(event)
        except ProtocolError as error:
            self._out.append(Refuse(error))
        finally:
            self._stepping = False
            effects = self._out[:]
            self._out.clear()
        return effects

    def _step(self, event: Event) -> None:
        match event:
            case events.Received(position, message):
                self._receive(position, message)
            case events.Proceed():
                self._proceed()
            case events.Held(report):
                self._held(report)
            case events.CutHeld():
                if self.participant.complete():
                    self._accepted_own()
            case events.Installed(value):
                self._installed(value)
            case events.Exited():
                self._exited()
            case events.Died(incarnation, vouched):
                self._died(incarnation, vouched=vouched)
            case events.Reachable(incarnation):
                self._repeat(incarnation)
            case events.AskAgain():
                self.coordinator.ask_again()
            case events.Overdue():
                self.coordinator.overdue()
            case events.LeasesEnded(granted):
                if self.coordinator.leases_ended(granted):
                    self._out.append(Schedule())
            case events.WentOn():
                self.participant.notice = event
                self._go_out()
            case events.Suspected() | events.Expelled() | events.Hangs() | events.Unsettled():
                self._learn(event)
            case events.JoinAsked() | events.LeaveAsked() | events.ResetAsked():
                self._request(event)

    def _learn(
        self, event: events.Suspected | events.Expelled | events.Hangs | events.Unsettled
    ) -> None:
        match event:
            case events.Suspected(incarnations):
                self.known.suspects = incarnations
            case events.Expelled(incarnations):
                self.known.expelled.update(incarnations)
            case events.Hangs(incarnation):
                self.known.hung.add(incarnation)
            case events.Unsettled():
                self.known.unsettled = True

    def _request(self, event: events.JoinAsked | events.LeaveAsked | events.ResetAsked) -> None:
        match event:
            case events.JoinAsked(member, options, position):
                why = self.coordinator.ask_join(member, options)
                if why is None:
                    self._out.append(Schedule())
                elif position < 0:
                    self._out.append(Contact(member.address, Denied(why)))
                else:  # the joiner believes the member that it has asked
                    self._out.append(Send(position, Denied(why, member)))
            case events.LeaveAsked(incarnation):
                self.coordinator.ask_leave(incarnation)
                self._out.append(Schedule())
            case events.ResetAsked(minimum, position):
                self._reset(minimum, position)

    def _reset(self, minimum: int, position: int) -> None:
        known = self.known
        if position >= 0:
            why = self.coordinator.reset(minimum)
            if why is not None:
                self._out.append(Send(position, ResetFailed(why)))
        elif known.view is None or not (self.frozen or self.coordinator.ballot):
            self._out.append(RefuseReset(NOT_BLOCKED))
        elif known.leader != known.position:
            self._out.append(Send(known.leader, Reset(minimum)))
        elif (why := self.coordinator.reset(minimum)) is not None:
            self._out.append(RefuseReset(why))

    # Changes at this member.

    def _proceed(self) -> None:
        known, participant, coordinator = self.known, self.participant, self.coordinator
        if known.view is None or self._go_out():
            return
        deferred = participant.deferred
        for position in sorted(deferred, key=lambda each: deferred[each].ballot, reverse=True):
            if participant.follows(position):
                self._promise(position, deferred.pop(position))
                self._out.append(Continue())  # the report under this ballot comes first
                return
        if known.leader != known.position:
            return
        if coordinator.ballot is not None:
            coordinator.go_on()
        elif self._has_reason():
            coordinator.begin()

    def _go_out(self) -> bool:
        """Be out by another one's word, if that counts by now."""
        notice = self.participant.notice
        if notice is None or not self.participant.is_out_by_notice():
            return False
        self.participant.notice = None
        self._out.append(GoOut(notice.view, notice.sender, notice.why))
        return True

    def _has_reason(self) -> bool:
        """Whether a change of view is due."""
        known, coordinator = self.known, self.coordinator
        assert known.view is not None
        return (
            bool(coordinator.joining or coordinator.leaving)
            or known.unsettled
            or self.frozen
            or any(known.is_out(member.incarnation) for member in known.view.members)
        )

    def _held(self, report: bytes) -> None:
        self.coordinator.leases.speak(self.coordinator.now)
        self.known.vouched.update(filter(self.participant.holdings.vouches, self.known.dead))
        if self.participant.coordinator == self.known.position:
            self.coordinator.flush(report)
        else:
            self.participant.report(report)

    def _accepted_own(self) -> None:
        """This member has accepted what it has proposed itself."""
        accepted = self.participant.accepted
        assert accepted is not None
        self.coordinator.accept(self.known.position, accepted[0])

    def _died(self, incarnation: int, *, vouched: bool) -> None:
        known = self.known
        assert known.view is not None
        known.dead.add(incarnation)
        vouched = vouched or self.participant.holdings.vouches(incarnation)
        if vouched and incarnation not in known.vouched:
            known.vouched.add(incarnation)
            self._report_again()

    def _report_again(self) -> None:
        """This member knows more than it has reported."""
        known, participant, ballot = self.known, self.participant, self.coordinator.ballot
        if ballot is not None and known.position in ballot.reports:
            ballot.note_own(known.vouched, chosen=participant.is_chosen)
            self._out.append(Schedule())
        elif self.frozen and participant.coordinator != known.position:
            self._out.append(Freeze())  # and the report is sent once more

    def _repeat(self, incarnation: int) -> None:
        view = self.known.view
        position = view.position(incarnation) if view is not None else -1
        if position < 0 or position == self.known.position:
            return
        if self.coordinator.ballot is None:
            self.participant.repeat(position)
        else:
            self.coordinator.repeat(position)

    def _installed(self, value: Value) -> None:
        before, led = self.known.view, self.coordinator.ballot is not None
        deferred = self.participant.deferred
        self.known.enter(value)
        self.participant.installed()
        self.coordinator.installed(value.view)
        self.known.dead |= self.coordinator.leases.seen_to_end()
        self.known.vouched = self.coordinator.leases.vouched()
        if before is not None and not led:
            # The old coordinator may have ended before they had its word.
            new = (each for each in value.view.members if before.position(each.incarnation) < 0)
            self.known.newcomers = tuple(new)
            if self.known.position == 0:
                self.coordinator.notify_newcomers()
        if before is not None:
            self._answer(before.members[position] for position in deferred)
        self.coordinator.grant_anew()

    def _answer(self, members: Iterable[Member]) -> None:
        """These asked for another view than the one that was installed, and wait for that.

        The old coordinator may have ended before those that are out had its word.
        """
        view = self.known.view
        assert view is not None
        for member in members:
            if view.position(member.incarnation) < 0 and member.incarnation not in self.known.dead:
                why = self.known.left_out.get(member.incarnation, "")
                self._out.append(Contact(member.address, Expelled(view, member.incarnation, why)))

    def _exited(self) -> None:
        self.participant.machine.change(ParticipantCause.EXITED)
        self.known.view = None
        self.coordinator.exited()

    # Messages.

    def _receive(self, position: int, message: ControlMessage) -> None:
        match message:
            case Flush(ballot=ballot) if ballot & MEMBERS_MAX - 1 == position:
                self.participant.holdings.check(message.mark, None)
                self.known.note_dead(message.dead)
                self._flush(position, message)
            case Ship(piece=piece, view=None):
                self._out.append(Supply(piece))
            case FlushOk():
                self._reported(position, message)
            case Promised(ballot=ballot):
                self._check_ballot(ballot, None)
                self.participant.highest = max(self.participant.highest, ballot)
                if self.coordinator.outbid(ballot):
                    self._proceed()
            case Propose():
                self._proposed(position, message)
            case Accept(ballot=ballot):
                self.coordinator.accept(position, ballot)
            case Chosen(ballot=ballot) if ballot & MEMBERS_MAX - 1 == position:
                self.participant.notified_chosen(ballot)
                if ballot < self.participant.promised:
                    self._report_again()
            case Blocked():
                self.participant.notified_blocked(message)
            case Lost():
                self.known.unsettled = True
                self._proceed()
                self._out.append(Schedule())
            case _:
                raise ProtocolError(f"{message.kind} out of place")

    def _check_ballot(self, ballot: int, leader: int | None) -> None:
        assert self.known.view is not None
        check_ballot(ballot, self.known.view, self.known.position, leader)

    def _flush(self, position: int, flush: Flush) -> None:
        view, participant = self.known.view, self.participant
        assert view is not None
        if participant.follows(position):
            self._check_ballot(flush.ballot, position)
            participant.deferred.pop(position, None)
            self.known.hung.discard(view.members[position].incarnation)
            self._promise(position, flush)
            return
        self._check_ballot(flush.ballot, None)
        participant.defer(position, flush)
        self.coordinator.outbid(flush.ballot)  # that member will not promise the own one any more
        self.known.unsettled = True
        self._proceed()
        self._out.append(Schedule())  # one that waits for another to lead asks whether that hangs

    def _promise(self, position: int, flush: Flush) -> None:
        if flush.ballot < self.participant.promised:
            self._out.append(Send(position, Promised(self.participant.promised)))
            return
        if flush.ballot != self.participant.promised:
            self.coordinator.give_up()
        self.participant.promise(flush)

    def _reported(self, position: int, message: FlushOk) -> None:
        holdings = self.participant.holdings
        holdings.check(message.held, None)
        self.known.note_dead(message.dead)
        if message.accepted is not None:
            holdings.check(None, message.accepted[1].cut)
        self.coordinator.reported(position, message)

    def _proposed(self, position: int, message: Propose) -> None:
        known, participant = self.known, self.participant
        assert known.view is not None
        ballot, view = message.ballot, message.value.view
        participant.holdings.check(None, message.value.cut)
        follows = view.follows == known.view.identity and view.number == known.view.number + 1
        if ballot & MEMBERS_MAX - 1 != position or not follows:
            raise ProtocolError(f"it proposed {view}, which does not come next")
        if ballot == participant.promised and self.frozen:
            participant.propose(ballot, message.value)
        elif ballot < participant.promised:
            self._out.append(Send(position, Promised(participant.promised)))
