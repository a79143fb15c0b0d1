"""A group of agreements on views: their effects are carried out, and messages passed on, by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from orcalike.transport.application_state import State
from orcalike.transport.membership import events
from orcalike.transport.membership.agreement import Agreement
from orcalike.transport.membership.ballot import Ballot
from orcalike.transport.membership.effects import (
    Contact,
    Continue,
    Effect,
    Freeze,
    GoOut,
    Grant,
    InstallView,
    Refuse,
    RefuseReset,
    ReportBlocked,
    Send,
    Supply,
)
from orcalike.transport.membership.events import Event
from orcalike.transport.membership.lease import Leases
from orcalike.transport.membership.messages import ControlMessage, Denied, Flush, Install, Value
from orcalike.transport.membership.state import CoordinatorState, ParticipantState
from orcalike.transport.view import BALLOT_MAX, POSITION_BITS, Member, View

A, B, C, D = (Member(f"sim:{name}", number, number) for number, name in enumerate("abcd"))
ROUND = 1 << POSITION_BITS
ROUNDS = BALLOT_MAX >> POSITION_BITS
"""How many a view has, less one."""
FIRST = 1, 1, 0
"""The identity of the first view."""


def flush(ballot: int) -> Flush:
    """A coordinator's first message."""
    return Flush(ballot, b"\x01", ())


class Sender:
    """The other end of a link to a member."""

    def __init__(self, member: Member) -> None:
        self.incarnation, self.address, self.position = member.incarnation, member.address, -1


class Port:
    """A layer whose packets are numbers: it holds all below `held`, and carries out effects."""

    def __init__(
        self,
        me: Member,
        view: View,
        log: list[tuple[str, View | None, Effect]],
        held: int = 1,
        degree: int = 0,
    ) -> None:
        self.me = me
        self.log = log
        self.held = held
        self.degree = degree
        self.state = State.WHOLE
        self.ends: bool | None = None
        """Whether the last cut that it made ends what is tentative."""
        self.granting = True
        self.unleased: tuple[int, ...] = ()
        self.alone: list[tuple[tuple[int, int, int], tuple[int, ...]]] = []
        """The views that it has ended without the acceptance of these, which may live."""
        self.ending: set[int] = set()
        """The members whose processes are at their end, as the kernel says."""
        self.vouched: set[int] = set()
        """The members of which the layers above know that they have not ended this view."""
        self.leases = Leases(1000)
        self.sent: deque[tuple[int, ControlMessage]] = deque()
        self.contacted: list[tuple[str, ControlMessage]] = []
        self.views: list[View] = []
        self.blocks: list[tuple[tuple[Member, ...], str]] = []
        self.out_by: View | None = None
        """The view that others went on with without it, by the word by which it is out."""
        self.denied: str | None = None
        self.agreement = Agreement(self, me, {"size": 3}, self.leases)
        self.step(events.Installed(Value(view, b"")))

    # What it holds.

    def missing(self, report: bytes) -> list[bytes]:
        return [bytes([number]) for number in range(report[0], self.held)]

    def check(self, report: bytes | None, cut: bytes | None) -> None:
        pass

    def cut_of(self, reports: dict[int, bytes], view: View, ends: bool) -> bytes:
        self.ends = ends
        return max(reports.values())

    def has_cut(self, cut: bytes) -> bool:
        return self.held >= cut[0]

    def has_state(self) -> int:
        return self.state

    def degree_here(self) -> int:
        return self.degree

    def vouches(self, incarnation: int) -> bool:
        return incarnation in self.vouched

    def is_ending(self, incarnation: int) -> bool:
        return incarnation in self.ending

    def say_alone(self, left_out: tuple[int, ...]) -> None:
        assert self.agreement.view is not None
        self.alone.append((self.agreement.view.identity, left_out))

    # Steps, and what follows.

    def step(self, event: Event) -> None:
        effects = self.agreement.step(event, 0)
        self.look_at_states()
        for effect in effects:
            self.log.append((self.me.address[-1], self.agreement.view, effect))
            self.carry_out(effect)

    def look_at_states(self) -> None:
        """The state of a role says what its fields say."""
        one, other = self.agreement.participant, self.agreement.coordinator
        state, ballot = one.machine.state, other.ballot
        assert (state is ParticipantState.OUTSIDE) == (self.agreement.view is None)
        if state is not ParticipantState.OUTSIDE:
            assert (state is ParticipantState.NORMAL) == (one.promised == 0)
            assert (state is ParticipantState.INCOMPLETE) == (one.proposal is not None)
        if state is ParticipantState.ACCEPTED:
            assert one.accepted is not None
            assert one.accepted[0] == one.promised
        assert (other.machine.state is CoordinatorState.IDLE) == (ballot is None)
        if ballot is not None:
            before = CoordinatorState.COLLECTING, CoordinatorState.SHORT_OF_REPORTS
            assert (other.machine.state in before) == (ballot.value is None)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(position, message):
                self.sent.append((position, message))
            case Contact(address, message):
                self.contacted.append((address, message))
            case Freeze():
                self.step(events.Held(bytes([self.held])))
            case Supply(piece) if piece[0] == self.held:
                self.held += 1
                self.step(events.CutHeld())
            case InstallView(view, cut):
                self.views.append(view)
                if view.position(self.me.incarnation) >= 0:
                    self.step(events.Installed(Value(view, cut)))
                else:
                    self.step(events.Exited())
            case GoOut(view):
                self.out_by = view
                self.step(events.Exited())
            case Grant(granting, without):
                self.granting, self.unleased = granting, without
                if not granting:
                    self.step(events.LeasesEnded(tuple(self.leased.items())))
            case ReportBlocked(missing, rule):
                self.blocks.append((missing, rule))
            case RefuseReset(why):
                self.denied = why
            case Continue():
                self.step(events.Proceed())
            case Refuse(error):
                raise error

    leased: Mapping[int, int] = {}
    """Until when leases to members are not over, less their span."""

    def take(self, position: int, message: ControlMessage) -> None:
        """What arrives; a decision is for the layer itself."""
        if isinstance(message, Install):
            assert self.has_cut(message.cut)
            self.carry_out(InstallView(message.view, message.cut))
        else:
            self.receive(position, message)

    def receive(self, position: int, message: ControlMessage) -> None:
        self.step(events.Received(position, message))

    def ask_join(self, member: Member, options: dict[str, Any]) -> str | None:
        """Why it may not join."""
        before = len(self.contacted)
        self.step(events.JoinAsked(member, options, -1))
        for _, message in self.contacted[before:]:
            assert isinstance(message, Denied)
            self.contacted.pop()
            return message.why
        return None

    def ask_leave(self, incarnation: int) -> None:
        self.step(events.LeaveAsked(incarnation))

    def notified_out(self, view: View, sender: Member | None, *, leaves: bool) -> None:
        """An endpoint says that the group has gone on without this member."""
        self.step(events.WentOn(view, None if sender is None else Sender(sender), leaves, ""))

    def reset(self, minimum: int) -> str | None:
        """Why it is not reset."""
        self.denied = None
        self.step(events.ResetAsked(minimum))
        return self.denied

    def suspect(self, incarnations: Iterable[int]) -> None:
        self.step(events.Suspected(frozenset(incarnations)))

    def died(self, incarnation: int, *, vouched: bool) -> None:
        self.step(events.Died(incarnation, vouched))

    def proceed(self) -> None:
        self.step(events.Proceed())

    def overdue(self) -> None:
        self.step(events.Overdue())

    def again(self, incarnation: int) -> None:
        self.step(events.Reachable(incarnation))

    def promise(self, position: int, ballot: int) -> None:
        """As if the member at `position` might lead, as seen here."""
        known = self.agreement.known
        assert known.view is not None
        suspects = known.suspects
        known.suspects = frozenset(each.incarnation for each in known.view.members)
        self.receive(position, flush(ballot))
        known.suspects = suspects

    @property
    def ballot(self) -> Ballot | None:
        return self.agreement.coordinator.ballot

    @property
    def accepted(self) -> tuple[int, Value] | None:
        return self.agreement.participant.accepted

    @property
    def leader(self) -> int:
        return self.agreement.leader


class Group:
    """Some members, in one view, and the messages between them."""

    def __init__(self, *members: Member, degree: int = 0, lineage: int = 1, **held: int) -> None:
        self.view = View(lineage, 1, 0, members)
        self.log: list[tuple[str, View | None, Effect]] = []
        """All effects in the order in which they were carried out: of which member, in which view."""
        self.ports = {
            name: Port(member, self.view, self.log, held.get(name, 1), degree)
            for member in members
            for name in member.address[-1]
        }
        self.gone: set[str] = set()

    def __getitem__(self, name: str) -> Port:
        return self.ports[name]

    def crash(self, *names: str) -> None:
        """These are gone; their own messages that were not passed on as well."""
        self.gone |= set(names)

    def suspect(self, by: str, *names: str) -> None:
        """Members begin to suspect others, and no others than these."""
        for each in by:
            port = self[each]
            port.suspect(self[name].me.incarnation for name in names)
            port.proceed()

    def pass_on(self, source: str, target: str = "", count: int = 99) -> int:
        """Let messages of `source` arrive, in order; those to `target` alone, if it is given."""
        port, passed = self[source], 0
        rest: list[tuple[int, ControlMessage]] = []
        while port.sent and passed < count and source not in self.gone:
            position, message = port.sent.popleft()
            name = self.view.members[position].address[-1]
            if target and name != target:
                rest.append((position, message))
                continue
            passed += 1
            port_there = self[name]
            if name not in self.gone and port_there.agreement.view == self.view:
                port_there.take(self.view.position(port.me.incarnation), message)
        port.sent.extendleft(reversed(rest))
        return passed

    def settle(self) -> None:
        """Let all arrive, in turn, until nothing is under way."""
        while sum(self.pass_on(name) for name in self.ports):
            pass

    def live(self) -> list[Port]:
        return [port for name, port in self.ports.items() if name not in self.gone]
