"""The group primitives, for programs that want messages and not objects (Amoeba, table 1: A01 to A06).

    group = create_group("chat", listen="unix:/tmp/chat")       # or join_group("chat", seeds=...)
    send_to_group(group, b"hello")
    match receive_from_group(group):
        case Data(sender, data): ...
        case Joined(member) | Left(member): ...
    leave_group(group)

All block, and may be called from any thread: to do two things at once, have two threads
(A10). Groups are closed: only members send and receive (A08). Data, joins and leaves are events in
one order, the same at each member (A09): a join is delivered to all but the joiner, a leave to all
and to the leaver too, which knows then that it has seen everything.

Nothing is thrown away, so a member that does not receive holds up the group: it has room for
65,536 events or 16 MiB, and after that senders wait for it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

import msgpack

from orcalike.runtime import waits
from orcalike.runtime.codes import Code
from orcalike.runtime.durations import Duration, seconds_of
from orcalike.runtime.errors import BlockingInLoop, GroupClosed, InvocationTimeout
from orcalike.runtime.raising import fresh
from orcalike.session.group_info import Blocked, GroupInfo, next_seqno_of
from orcalike.session.options import JoinOptions, make_options
from orcalike.session.recovery import check_minimum
from orcalike.session.session import LEAVE_WITHIN, Session
from orcalike.session.waiting import SAY_EVERY
from orcalike.transport.degree import (
    AVAILABLE,
    NUMBER_MAX,
    Resilience,
    degree_of,
    resilience_of,
)
from orcalike.transport.drivers.deferral import held, held_or_undone
from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.errors import NotEnoughMembers
from orcalike.transport.layers.base import Layer
from orcalike.transport.layers.pack import Pack
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View, resets_of
from orcalike.transport.wire.message import Message

MESSAGE_MAX = 16_777_216
"""Bytes of a message."""
EVENTS_MAX = 65_536
"""Events that a member keeps for `receive_from_group` before senders must wait for it."""
BYTES_MAX = 16_777_216
"""Bytes of such events."""
UNDER_WAY_MAX = 8_388_608
"""Bytes of a member's own messages that are not ordered yet, in a stack without PACK, which counts them."""

_log = logging.getLogger("orcalike")

DEFAULT_NAME = "messages"
_DATA = b"\1"
_VOID = b"\2"
"""In the place of `_DATA`: a message that was taken back before it left."""
_AVAILABLE = b"\3"
"""From here on the degree counts as far as the group has members for it."""
_ENDED = bytes((0, Code.ENDED << 1))  # as the witness casts it, to object 0


@dataclass(frozen=True, slots=True)
class Data:
    """A message."""

    sender: Member
    data: bytes
    seqno: int
    """The place in the order of the packet that brought it."""
    index: int
    """Its place in that packet."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Info(GroupInfo):
    """The state of a group, as one member knows it."""

    seqno: int
    """The place in the order of the newest packet that was delivered here; 0 for none."""
    waiting: int
    """Events that `receive_from_group` has not taken yet."""


class Inbox(Layer):
    """What stands on top of the stack: it keeps events until they are received."""

    name = "orcalike.messages"
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
        self.place = -1
        self.me = stack.me
        self.seqno = 0
        self.events: deque[Event] = deque()
        self.size = 0
        self.sent = 0
        self.returned = 0
        """How many of this member's own messages were cast, and how many have come back."""
        self.under_way = 0
        """Bytes of those that have not, which count where the stack has no PACK."""
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
        self._degree_told = 0
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
        if self._degree_told != degree:
            self._degree_told = degree
            self.below.degree(degree)
        self.tell_room()
        if self.wants_emptying:
            self._full = False
            self.below.credit(True)

    def too_few(self) -> str | None:
        """Why messages wait for more members; None where they do not."""
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
        found = self.pack.find_unsent(ticket) if self.pack is not None else None
        if found is not None:
            found.overwrite(_VOID)
        return found is not None

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

    def tell_room(self) -> None:
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
        self.tell_room()
        while self.awaited:
            self.awaited.popleft().finish()

    # Upcalls.

    def up_view(self, view: View, cut: bytes) -> None:
        before, self.installed = self.installed, view
        self.place = view.place(self.me.incarnation)
        self.me = view.members[self.place]
        if before is not None:
            left = [m for m in before.replicas if view.place(m.incarnation) < 0]
            joined = [m for m in view.replicas if before.place(m.incarnation) < 0]
            self.add(*(Left(member, view) for member in left))
            self.add(*(Joined(member, view) for member in joined))
        self.core.again(self)
        self.session.viewed(view)

    def up_cast(self, message: Message) -> None:
        assert self.installed is not None
        if message.source >= 0:
            sender = self.installed.members[message.source]
        else:  # it has left since
            sender = self.stack.departed[-2 - message.source]
        body = message.body
        self.seqno = message.seqno
        if body.startswith((_DATA, _VOID)):
            if body.startswith(_DATA):
                self.add(Data(sender, body[1:], message.seqno, message.index))
            if message.source == self.place:
                self.returned += 1
                self.under_way -= len(body)
                if self.room is not None:
                    self.core.again(self)  # once PACK has counted it
                if self.awaited:
                    self.awaited.popleft().finish()
            if self.is_full():
                self._full = True
                self.below.credit(False)
        elif body.startswith(_ENDED):
            unpacker = msgpack.Unpacker()
            unpacker.feed(body[len(_ENDED) :])
            self.session.ended(set(unpacker))
        elif body == _AVAILABLE:
            self.lower_degree()
            if message.source == self.place and self.awaited:
                self.returned += 1
                self.awaited.popleft().finish()
        else:
            self.session.system_error(f"{sender} sent what is no message")

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


class MessageGroup:
    """A membership in a group; the functions of this module work on it."""

    def __init__(self, options: JoinOptions) -> None:
        self._session = Session(options, Inbox, Inbox)
        self._inbox: Inbox = self._session.upper
        self._session.cast_ended = self._cast_ended

    def _cast_ended(self, ranks: set[int]) -> None:
        body = _ENDED + b"".join(map(msgpack.packb, sorted(ranks)))
        self._session.pump.call(self._session.stack.cast, Message(body))

    @held
    def _send(self, data: bytes, timeout: float | None) -> None:
        inbox, pump = self._inbox, self._session.pump
        number = ticket = 0
        taken: list[bool] = []
        returned = Waitable()
        room: Waitable | None = None
        end = None if timeout is None else time.monotonic() + timeout
        _refuse_loop("send_to_group")

        def cast(now: int) -> None:
            nonlocal number, ticket, room
            room = inbox.wait_for_room(len(data) + 1)
            if room is not None:
                return
            inbox.sent = number = inbox.sent + 1
            inbox.under_way += len(data) + 1
            inbox.awaited.append(returned)
            if inbox.failure is not None:  # since it was looked at
                returned.finish()
            message = Message(_DATA + data)
            message.degree = inbox.group_degree
            ticket = inbox.pack.ticket if inbox.pack is not None else 0
            self._session.stack.cast(message, now)

        if inbox.failure is not None:
            raise fresh(inbox.failure)
        if inbox.notice is not None:
            notice, inbox.notice = inbox.notice, None
            raise notice
        waits.enter("message", "", "send_to_group")
        try:
            pump.call(cast)
            while room is not None:
                if not self._attend(room, end, "send_to_group"):
                    raise InvocationTimeout(
                        f"a message of {len(data)} bytes found no room within {timeout} s: what "
                        "was sent before is not ordered yet; it was not sent",
                        "withdrawn",
                    )
                pump.call(cast)
            self._attend(returned, end, "send_to_group")
        finally:
            waits.leave()
        if inbox.returned < number:
            if inbox.failure is not None:
                raise fresh(inbox.failure)
            pump.call(lambda now: taken.append(inbox.take_back(ticket)))
            if taken[0]:
                self._raise_not_sent(len(data), timeout)
            raise InvocationTimeout(
                f"a message of {len(data)} bytes was not ordered within {timeout} s; it may be yet",
                "unknown",
            )

    def _attend(self, waitable: Waitable, end: float | None, what: str) -> bool:
        """Wait in this thread; each 10 s the log has why. False when the time is over."""
        session, inbox, told = self._session, self._inbox, False
        try:
            while True:
                too_few = inbox.too_few()
                if too_few is not None:
                    told = True
                    session.lacks_members(inbox.group_degree + 1)
                rest = _rest(end)
                within = SAY_EVERY if rest is None else min(rest, SAY_EVERY)
                if session.pump.attend(waitable, within):
                    return True
                if _rest(end) == 0.0:
                    return False
                why = session.why_stuck() or inbox.too_few() or "it has no place in the order yet"
                _log.warning("%s waits: %s", what, why)
        finally:
            if told:
                session.lacks_members(0)

    def _raise_not_sent(self, size: int, timeout: float | None) -> NoReturn:
        """The time of a message is over that had not left this member, and never will."""
        what = f"a message of {size} bytes was not sent within {timeout} s"
        if (too_few := self._inbox.too_few()) is not None:
            raise NotEnoughMembers(f"{what}: {too_few}")
        raise InvocationTimeout(what, "withdrawn")

    def _take(self, timeout: float | None) -> Event:
        """The next event, where this thread waits for it."""
        inbox = self._inbox
        _refuse_loop("receive_from_group")
        end = None if timeout is None else time.monotonic() + timeout
        event = None
        while event is None:
            with inbox.lock:
                receiver = Waitable()
                if inbox.events:
                    event = inbox.take()
                elif inbox.failure is not None:
                    raise fresh(inbox.failure)
                else:
                    inbox.receivers.append(receiver)
            if event is None:
                self._wait(receiver, timeout, end)
        if inbox.wants_emptying and inbox.failure is None:
            self._session.pump.call(self._session.stack.nudge, inbox)
        return event

    def _lower_degrees(self, timeout: float | None) -> None:
        """Say that the members that are there are enough for the degree."""
        inbox, pump = self._inbox, self._session.pump
        returned = Waitable()

        def lower(now: int) -> None:
            inbox.lower_degree()
            inbox.sent += 1
            inbox.awaited.append(returned)
            self._session.stack.cast(Message(_AVAILABLE), now)

        pump.call(lower)
        if not pump.attend(returned, timeout):
            raise InvocationTimeout(f"not reset within {timeout} s; it may be yet", "unknown")

    def _put_back(self, event: Event) -> None:
        self._inbox.put_back(event)

    # What a handler of a signal keeps from being received stays here.
    _receive = held_or_undone(_put_back)(_take)

    def _wait(self, receiver: Waitable, timeout: float | None, end: float | None) -> None:
        """Wait in this thread for an event; raises TimeoutError."""
        waits.enter("message", "", "receive_from_group")
        try:
            rest = None if end is None else end - time.monotonic()
            if (rest is not None and rest <= 0) or not self._session.pump.attend(receiver, rest):
                raise TimeoutError(f"no event within {timeout} s")
        finally:
            waits.leave()
            with self._inbox.lock:
                if receiver in self._inbox.receivers:
                    self._inbox.receivers.remove(receiver)

    @held
    def _leave(self, timeout: float) -> None:
        if not isinstance(self._inbox.failure, GroupClosed):
            self._session.leave(timeout)
            self._inbox.fail_all(GroupClosed(f"the group {self._session.options.name!r} was left"))


def create_group(
    name: str = DEFAULT_NAME,
    *,
    listen: str | None = None,
    resilience: Resilience = 0,
    degree: Literal["required", "available"] = "required",
    stack: str | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
) -> MessageGroup:
    """CreateGroup (A01): make a group; this member is its first, and its sequencer.

    With `listen="unix:PATH"` or `"tcp:HOST:PORT"` others can join it. A launched program has its
    group already: join it. TCP needs a `key`, as in `orcalike.join`. With
    `resilience=r` a message is delivered anywhere only when r + 1 members hold it, so that none is
    lost while at most r crash; with `degree="available"` when MIN(r, members - 1) + 1 do. `stack` is a stack string, as for
    `orcalike.join`: all members must have the same one, and it may be without PACK.

    Raises InsecureConfig, StackError, OrcalikeError if no socket can listen there.
    """
    options = _plan(name, None, listen, resilience, None, stack, key, degree)
    if options.how == "launched":
        raise ValueError("a launched program joins its group with join_group()")
    return _joined(options)


def join_group(
    name: str = DEFAULT_NAME,
    *,
    seeds: str | Sequence[str] | None = None,
    timeout: Duration | None = None,
    stack: str | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
) -> MessageGroup:
    """JoinGroup (A02): join the group that one of the addresses is in, or the launched program's.

    The join has a place in the order: all others receive `Joined`, and this member receives what
    comes after.

    Raises JoinFailed after `timeout` seconds, ConfigMismatch, InsecureConfig, StackError.
    """
    options = _plan(name, seeds, None, 0, timeout, stack, key)
    if options.how == "alone":
        raise ValueError("this program was not launched: name the group's members with seeds=")
    return _joined(options)


def _leave_again(options: JoinOptions, group: MessageGroup) -> None:
    group._leave(1.0)


# A handler of a signal may raise as this returns: the caller would not have the group then.
@held_or_undone(_leave_again)
def _joined(options: JoinOptions) -> MessageGroup:
    group = MessageGroup(options)
    group._session.join()
    return group


def _refuse_loop(what: str) -> None:
    asyncio = sys.modules.get("asyncio")  # if it is not imported, no loop runs
    if asyncio is not None and asyncio._get_running_loop() is not None:
        raise BlockingInLoop(
            f"{what} would block the event loop that runs on this thread: "
            f"await asyncio.to_thread({what}, ...)"
        )


def _plan(
    name: str,
    seeds: str | Sequence[str] | None,
    listen: str | None,
    resilience: Resilience,
    timeout: Duration | None,
    stack: str | None,
    key: bytes | str | os.PathLike[str] | None,
    degree: str = "required",
) -> JoinOptions:
    return make_options(
        name,
        seeds=seeds,
        listen=listen,
        size=None,
        resilience=resilience,
        degree=degree,
        blocked="wait",
        stack=stack,
        timeout=timeout,
        key=key,
    )


def send_to_group(
    group: MessageGroup, data: bytes | bytearray | memoryview, *, timeout: Duration | None = None
) -> None:
    """SendToGroup (A03): a reliable, totally ordered send to all members, this one too.

    Returns when the message is delivered here. If more than 8 MiB of this member's would not be
    ordered yet, it waits first. Raises ValueError for more than 16 MiB, InvocationTimeout when the
    time is over (`outcome` is "withdrawn" if it was not sent; else it may be ordered yet), Expelled
    where the group has gone on without this member, GroupClosed; once after a reset
    DataLossPossible, and the message is not sent.
    """
    body = bytes(data)
    if len(body) > MESSAGE_MAX:
        raise ValueError(f"a message of {len(body)} bytes; {MESSAGE_MAX} are allowed")
    group._send(body, seconds_of(timeout))


def receive_from_group(group: MessageGroup, *, timeout: Duration | None = None) -> Event:
    """ReceiveFromGroup (A04): the next event in the order, as soon as there is one.

    What came before this member left, or was expelled, is received first. Raises TimeoutError,
    Expelled, GroupClosed.
    """
    return group._receive(seconds_of(timeout))


@held
def get_info_group(group: MessageGroup) -> Info:
    """GetInfoGroup (A06): the state of the group, blocked or not. Raises GroupClosed after leaving."""
    inbox, session = group._inbox, group._session
    with inbox.lock:
        if inbox.installed is None or isinstance(inbox.failure, GroupClosed):
            raise GroupClosed(f"the group {session.options.name!r} was left")
        return Info(
            name=session.options.name,
            address=session.address,
            me=inbox.me,
            view=session.show(inbox.installed),
            resilience=resilience_of(inbox.group_degree),
            blocked=Blocked(*waits_for) if (waits_for := session.waits_for) else None,
            next_seqno=inbox.next_seqno,
            seqno=inbox.seqno,
            waiting=len(inbox.events),
        )


def reset_group(group: MessageGroup, minimum: int, *, timeout: Duration | None = None) -> View:
    """ResetGroup (A05): rebuild a blocked group of the members that answer (A12 to A14).

    View changes need no reset: a group that has lost members goes on by itself, no call fails for
    it, and all receive `Left`. But if those that are left may not go on without the others,
    because these may have gone on themselves or hold what no other does, the group is blocked:
    senders wait, and `get_info_group(group).blocked` says for which members. The program may then say that
    `minimum` members are enough, this one and witnesses included. How many that is is its own
    policy: a bank wants more than half, a multiplication of matrices is content with one. What only
    the missing members held is lost; the group has a new lineage (`view.lineage`), and they are
    expelled when they come back. Where several members reset at once it is rebuilt once.

    Returns the new view, which all receive as `Left` events too. Raises NotPrimary where fewer have
    answered (it may be tried again), OrcalikeError where the group is not blocked, ValueError for a
    `minimum` below 1, GroupClosed.
    """
    check_minimum(minimum)
    _refuse_loop("reset_group")
    if isinstance(group._inbox.failure, GroupClosed):
        raise fresh(group._inbox.failure)
    return group._session.reset(minimum, seconds_of(timeout), group._lower_degrees)


def leave_group(group: MessageGroup, *, timeout: Duration = LEAVE_WITHIN) -> None:
    """LeaveGroup: leave; all receive `Left`, this member as its last event.

    Takes no longer than `timeout` seconds; a group that does not answer is left all the same.
    """
    within = seconds_of(timeout)
    group._leave(LEAVE_WITHIN if within is None else within)


def _rest(end: float | None) -> float | None:
    """The seconds until then; None for a time that never comes."""
    return None if end is None else max(end - time.monotonic(), 0.0)


__all__ = [
    "BYTES_MAX",
    "EVENTS_MAX",
    "MESSAGE_MAX",
    "UNDER_WAY_MAX",
    "Data",
    "Event",
    "Info",
    "Joined",
    "Left",
    "MessageGroup",
    "create_group",
    "get_info_group",
    "join_group",
    "leave_group",
    "receive_from_group",
    "reset_group",
    "send_to_group",
]
