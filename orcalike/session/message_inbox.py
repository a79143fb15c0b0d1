"""What stands on top of a stack that carries messages: events in one order, kept until they are received."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import msgpack

from orcalike.runtime.codes import Code, ended_ranks
from orcalike.session.group_info import next_seqno_of
from orcalike.session.session import Session
from orcalike.transport.degree import AVAILABLE, NUMBER_MAX, degree_of
from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.base import Layer
from orcalike.transport.layers.pack import Pack
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View, resets_of
from orcalike.transport.wire.message import Message

EVENTS_MAX = 65_536
"""Events that a member keeps for `receive_from_group` before senders must wait for it."""
BYTES_MAX = 16_777_216
"""Bytes of such events."""
UNDER_WAY_MAX = 8_388_608
"""Bytes of a member's own messages that are not ordered yet, in a stack without PACK, which counts them."""

DATA = b"\1"
VOID = b"\2"
"""In the place of `DATA`: a message that was taken back before it left."""
LOWERED = b"\3"
"""From here on the degree counts as far as the group has members for it."""
ENDED = bytes((0, Code.ENDED << 1))  # as the witness casts it, to object 0


@dataclass(frozen=True, slots=True)
class Data:
    """A message."""

    sender: Member
    data: bytes
    seqno: int
    """The place in the order of the packet that brought it."""
    index: int
    """Its index in that packet."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A member has joined."""

    member: Member
    view: View
    """The view that it is in first."""


@dataclass(frozen=True, slots=True)
class Left:
    """A member has left."""

    member: Member
    view: View
    """The first view without it; at the leaver itself, the last view that it was in."""


Event = Data | Joined | Left
"""What `receive_from_group` returns."""


class Inbox(Layer):
    """What stands on top of the stack: it keeps events until they are received."""

    name = "orcalike.messages"
    kind = "messages"
    needs = frozenset({"TOTAL_ORDER", "STATE"})  # the group's degree is the state

    def __init__(self, stack: Stack, session: Session) -> None:
        super().__init__(stack)
        self.session = session
        self.lock = threading.Lock()
        """Guards `events`, `size`, `receivers` and `failure`; held for moments only."""
        self.receivers: list[Waitable] = []
        """Threads that wait for an event."""
        self._begin(stack)

    def rebind(self, stack: Stack) -> None:
        """Begin on another stack: this member was expelled before it had joined."""
        super().__init__(stack)
        with self.lock:
            self._begin(stack)

    def _begin(self, stack: Stack) -> None:
        self.stack = stack
        self.installed: View | None = None
        self.position = -1
        self.me = stack.me
        self.seqno = 0
        self.events: deque[Event] = deque()
        self.size = 0
        self.sent = 0
        self.returned = 0
        """How many of this member's own messages were cast, and how many have come back."""
        self.under_way = 0
        """Bytes of those that have not, which count if the stack has no PACK."""
        self.failure: Exception | None = None
        self.notice: Exception | None = None
        """What the next send raises, once."""
        self.awaited: deque[Waitable] = deque()
        """The senders that wait for this member's own messages, in the order in which they come back."""
        pack = stack.focus("PACK")
        self.pack = pack if isinstance(pack, Pack) else None
        self.room: Waitable | None = None
        """A sender of more than may be under way waits for this."""
        self.group_degree = 0
        """The group's resilience degree, which all its messages have; 0 if no process can join."""
        if self.session.options.how != "alone":
            self.group_degree = degree_of(self.session.options.resilience)
        self.available = self.session.options.degree == "available"
        """Whether the degree counts as far as the view has members for it."""
        self._full = False
        self._degree_set = 0
        stack.above = self

    @property
    def next_seqno(self) -> int:
        """The seqno of the packet that is delivered next."""
        return next_seqno_of(self.stack)

    def is_full(self, part: int = 1) -> bool:
        """Whether a `part`th of what there is room for is taken."""
        return len(self.events) * part >= EVENTS_MAX or self.size * part >= BYTES_MAX

    @property
    def wants_emptying(self) -> bool:
        """Whether senders wait for this member, and need not any more."""
        return self._full and not self.is_full(2)

    def proceed(self) -> None:
        """There is room again: let the senders go on. The stack must know the degree (H2)."""
        degree = self.group_degree | (AVAILABLE if self.available else 0)
        if self._degree_set != degree:
            self._degree_set = degree
            self.below.degree(degree)
        self.wake_senders()
        if self.wants_emptying:
            self._full = False
            self.below.credit(True)

    def load(self) -> tuple[int, int]:
        """There are no objects."""
        return 0, 0

    def too_few(self) -> str | None:
        """Why messages wait for more members; None if they do not."""
        view, degree = self.installed, self.group_degree
        if view is None or self.available or resets_of(view.lineage):
            return None
        if degree > NUMBER_MAX or len(view.replicas) > degree:
            return None
        return self.say_too_few(degree)

    def say_too_few(self, degree: int) -> str:
        """What a degree takes, and what the view has."""
        present = 0 if self.installed is None else len(self.installed.replicas)
        return (
            f"degree {degree} takes {degree + 1} members with replicas, and the view has {present}"
        )

    def lower_degree(self) -> None:
        """From here on the degree counts as far as the view has members for it."""
        self.available = True
        self.core.again(self)

    def take_back(self, ticket: int) -> bool:
        """Have a message of this member never leave, if it has not left; inside the pump."""
        return self.pack is not None and self.pack.take_back(ticket, VOID)

    def take(self) -> Event:
        """The oldest event; under `lock`."""
        event = self.events.popleft()
        if isinstance(event, Data):
            self.size -= len(event.data)
        return event

    def put_back(self, event: Event) -> None:
        """The event that was taken last was not received after all."""
        with self.lock:
            self.events.appendleft(event)
            if isinstance(event, Data):
                self.size += len(event.data)

    def add(self, *events: Event) -> None:
        """Keep events for those that receive."""
        with self.lock:
            self.events.extend(events)
            self.size += sum(len(event.data) for event in events if isinstance(event, Data))
            self._wake_receivers()

    def _wake_receivers(self) -> None:
        receivers, self.receivers = self.receivers, []
        for receiver in receivers:
            receiver.finish()

    def wait_for_room(self, size: int) -> Waitable | None:
        """What to wait for, if so many bytes more may not be under way now, not ordered yet."""
        if self.failure is not None:
            return None
        if self.pack is not None and self.pack.has_room_for(size):
            return None
        if self.pack is None and (
            self.under_way == 0
            or (self.sent - self.returned < EVENTS_MAX and self.under_way + size <= UNDER_WAY_MAX)
        ):
            return None
        if self.room is None:
            self.room = Waitable()
        return self.room

    def wake_senders(self) -> None:
        """There may be room, or will never be: those that wait for it look again."""
        room, self.room = self.room, None
        if room is not None:
            room.finish()

    def fail_all(self, error: Exception) -> None:
        """No more is sent or received; what is here already stays."""
        with self.lock:
            if self.failure is None:
                self.failure = error
            self._wake_receivers()
        self.wake_senders()
        while self.awaited:
            self.awaited.popleft().finish()

    def abandon(self, error: Exception) -> None:
        """This is a forked child: what is here is its parent's, as the lock may be that of another thread."""
        self.lock = threading.Lock()
        self.failure = error
        self.events.clear()
        self.size = 0

    # Upcalls.

    def up_view(self, view: View, cut: bytes) -> None:
        if view.position(self.me.incarnation) < 0:
            return  # of the time before this member: a witness has kept it
        before, self.installed = self.installed, view
        self.position = view.position(self.me.incarnation)
        self.me = view.members[self.position]
        if before is not None:
            left = [m for m in before.replicas if view.position(m.incarnation) < 0]
            joined = [m for m in view.replicas if before.position(m.incarnation) < 0]
            self.add(*(Left(member, view) for member in left))
            self.add(*(Joined(member, view) for member in joined))
        self.core.again(self)
        self.session.viewed(view)

    def up_cast(self, message: Message) -> None:
        if self.installed is None:  # likewise: messages of that time are for others
            if message.body == LOWERED:
                self.lower_degree()
            return
        if message.source >= 0:
            sender = self.installed.members[message.source]
        else:  # it has left since
            sender = self.stack.departed[-2 - message.source]
        body = message.body
        self.seqno = message.seqno
        if body.startswith((DATA, VOID)):
            if body.startswith(DATA):
                self.add(Data(sender, body[1:], message.seqno, message.index))
            if message.source == self.position:
                self.returned += 1
                self.under_way -= len(body)
                if self.room is not None:
                    self.core.again(self)  # once PACK has counted it
                if self.awaited:
                    self.awaited.popleft().finish()
            if self.is_full():
                self._full = True
                self.below.credit(False)
        elif body.startswith(ENDED):
            self._take_ended(sender, body)
        elif body == LOWERED:
            self.lower_degree()
            if message.source == self.position and self.awaited:
                self.returned += 1
                self.awaited.popleft().finish()
        else:
            self.session.system_error(f"{sender} sent what is no message")

    def _take_ended(self, sender: Member, body: bytes) -> None:
        """The ranks that have ended; whatever is wrong with them, this member goes on."""
        unpacker = msgpack.Unpacker()
        unpacker.feed(body[len(ENDED) :])
        try:
            self.session.ended(ended_ranks(unpacker))
        except (ProtocolError, ValueError, TypeError) as error:
            self.session.system_error(f"{sender} sent what is no message: {error!r}")

    def up_is_held_up(self) -> bool:
        return bool(self.receivers)

    def up_problem(self, member: object, why: str) -> None:
        assert isinstance(member, Member)
        self.session.suspected(member, why)

    def up_blocked(self, missing: object, rule: str) -> None:
        assert isinstance(missing, tuple)
        self.session.blocked_by(missing, rule)

    def up_reset_failed(self, why: str) -> None:
        self.session.reset_failed(why)

    def up_exit(self, why: str) -> None:
        if self.installed is not None:
            self.add(Left(self.me, self.installed))
        self.session.exited(why)

    def up_join_failed(self, why: str) -> None:
        self.session.join_failed(why)

    def up_join_denied(self, why: str) -> None:
        self.session.join_denied(why)

    def up_system_error(self, why: str) -> None:
        self.session.system_error(why)

    def up_give_state(self) -> Iterator[bytes]:
        """Messages leave no state behind; there is the group's degree, and how it counts."""
        return iter([bytes([self.group_degree, self.available])])

    def up_take_state(self, piece: bytes) -> None:
        """The group's degree, and how it counts."""
        self.group_degree, self.available = piece[0], bool(piece[1])
