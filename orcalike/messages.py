"""The group primitives, for programs that want messages and not objects (Amoeba, table 1).

    group = create_group("chat", listen="unix:/tmp/chat")       # or join_group("chat", seeds=...)
    send_to_group(group, b"hello")
    match receive_from_group(group):
        case Data(sender, data): ...
        case Joined(member) | Left(member): ...
    leave_group(group)

They are functions, as in Amoeba, under the names of its table. All block, and may be called from any thread: to do two things at once, have two threads.
Groups are closed: only members send and receive. Data, joins and leaves are events in
one order, the same at each member: a join is delivered to all but the joiner, a leave to all
and to the leaver too, which knows then that it has seen everything.

Nothing is thrown away, so a member that does not receive holds up the group: it has room for
65,536 events or 16 MiB, and after that senders wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

from orcalike.runtime.durations import Duration, seconds_of
from orcalike.runtime.errors import GroupClosed
from orcalike.runtime.raising import fresh
from orcalike.session import resetting
from orcalike.session.deadline import Deadline
from orcalike.session.entering import Entering
from orcalike.session.group_calls import check_minimum
from orcalike.session.group_info import Blocked, GroupInfo
from orcalike.session.locating import located
from orcalike.session.message_group import MessageGroup, refuse_loop
from orcalike.session.message_inbox import (
    BYTES_MAX,
    EVENTS_MAX,
    UNDER_WAY_MAX,
    Data,
    Event,
    Joined,
    Left,
)
from orcalike.session.notebook import let_cells_wait
from orcalike.session.options import JoinOptions, make_options
from orcalike.session.session import GIVE_UP_WITHIN, LEAVE_WITHIN
from orcalike.transport.degree import Resilience, resilience_of
from orcalike.transport.drivers.deferral import held, held_or_undone
from orcalike.transport.record import Frozen
from orcalike.transport.view import Member, View

MESSAGE_MAX = 16_777_216
"""Bytes of a message."""
DEFAULT_NAME = "messages"


class Info(GroupInfo, kw_only=True):
    """The state of a group, as one member knows it."""

    seqno: int
    """The place in the order of the newest packet that was delivered here; 0 for none."""
    waiting: int
    """Events that `receive_from_group` has not taken yet."""

    def __init__(
        self,
        *,
        name: str,
        address: str,
        me: Member,
        view: View,
        resilience: Resilience,
        blocked: Blocked | None,
        next_seqno: int,
        seqno: int,
        waiting: int,
    ) -> None:
        group = name, address, me, view, resilience, blocked, next_seqno
        Frozen.__init__(self, *group, seqno, waiting)


class _Place(NamedTuple):
    """How a member is reached by TCP."""

    key: bytes | str | os.PathLike[str] | None
    advertise: str | None
    interface: str | None
    insecure: bool


def create_group(
    name: str = DEFAULT_NAME,
    *,
    listen: str | None = None,
    resilience: Resilience = 0,
    degree: Literal["required", "available"] = "required",
    stack: str | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
    advertise: str | None = None,
    interface: str | None = None,
    insecure: bool = False,
) -> MessageGroup:
    """CreateGroup: make a group; this member is its first.

    With `listen="unix:PATH"` or `"tcp:HOST:PORT"` others can join it. A launched program has its
    group already: join it. TCP needs a `key`, and has `advertise`, `interface` and `insecure`, as in `orcalike.join`. With
    `resilience=r` a message is delivered anywhere only when r + 1 members hold it, so that none is
    lost while at most r crash; with `degree="available"` when MIN(r, members - 1) + 1 do. `stack` is a stack string, as for
    `orcalike.join`: all members must have the same one, and it may be without PACK.

    Raises InsecureConfig, StackError, OrcalikeError if no socket can listen there.
    """
    place = _Place(key, advertise, interface, insecure)
    options = _plan(name, None, listen, resilience, None, stack, place, degree)
    if options.how == "launched":
        raise ValueError("a launched program joins its group with join_group()")
    return _joined(options, "create_group")


def join_group(
    name: str = DEFAULT_NAME,
    *,
    seeds: str | Sequence[str] | None = None,
    timeout: Duration | None = None,
    stack: str | None = None,
    key: bytes | str | os.PathLike[str] | None = None,
    advertise: str | None = None,
    interface: str | None = None,
    insecure: bool = False,
) -> MessageGroup:
    """JoinGroup: join the group that one of the addresses is in, or the launched program's.

    The join has a place in the order: all others receive `Joined`, and this member receives what
    comes after.

    Raises JoinFailed after `timeout` seconds, ConfigMismatch, InsecureConfig, StackError.
    """
    place = _Place(key, advertise, interface, insecure)
    options = _plan(name, seeds, None, 0, timeout, stack, place)
    if options.how == "alone":
        raise ValueError("this program was not launched: name the group's members with seeds=")
    return _joined(options, "join_group")


def _leave_again(options: JoinOptions, group: MessageGroup) -> None:
    group._leave(GIVE_UP_WITHIN)


# A handler of a signal may raise as this returns: the caller would not have the group then.
@held_or_undone(_leave_again)
def _joined(options: JoinOptions, primitive: str) -> MessageGroup:
    let_cells_wait()
    refuse_loop(primitive)
    deadline = Deadline(options.timeout)
    group = MessageGroup(located(options, deadline))
    Entering(group._session).join(deadline)
    return group


def _plan(
    name: str,
    seeds: str | Sequence[str] | None,
    listen: str | None,
    resilience: Resilience,
    timeout: Duration | None,
    stack: str | None,
    place: _Place,
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
        key=place.key,
        advertise=place.advertise,
        interface=place.interface,
        insecure=place.insecure,
    )


def send_to_group(
    group: MessageGroup, data: bytes | bytearray | memoryview, *, timeout: Duration | None = None
) -> None:
    """SendToGroup: a reliable, totally ordered send to all members, this one too.

    Returns when the message is delivered here. If more than 8 MiB of this member's would not be
    ordered yet, it waits first. Raises TypeError for what is not like bytes, ValueError for more than 16 MiB, InvocationTimeout when the
    time is over (`outcome` is "withdrawn" if it was not sent; else it may be ordered yet), Expelled
    if the group has gone on without this member, GroupClosed; once after a reset
    DataLossPossible, and the message is not sent.
    """
    # Of a number `bytes` would make as many zeros, of a list one byte for each element.
    body = bytes(data if isinstance(data, bytes) else memoryview(data))
    if len(body) > MESSAGE_MAX:
        raise ValueError(f"a message of {len(body)} bytes; {MESSAGE_MAX} are allowed")
    group._send(body, seconds_of(timeout))


def receive_from_group(group: MessageGroup, *, timeout: Duration | None = None) -> Event:
    """ReceiveFromGroup: the next event in the order, as soon as there is one.

    What came before this member left, or was expelled, is received first. Raises TimeoutError,
    Expelled, GroupClosed.
    """
    return group._receive(seconds_of(timeout))


@held
def get_info_group(group: MessageGroup) -> Info:
    """GetInfoGroup: the state of the group, blocked or not. Raises GroupClosed after leaving."""
    inbox, session = group._inbox, group._session
    with inbox.lock:
        if isinstance(inbox.failure, GroupClosed):
            raise fresh(inbox.failure)
        if inbox.installed is None:
            raise GroupClosed(f"the group {session.options.name!r} was not joined")
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
    """ResetGroup: rebuild a blocked group of the members that answer.

    View changes need no reset: a group that has lost members goes on by itself, no call fails for
    it, and all receive `Left`. But if those that are left may not go on without the others,
    because these may have gone on themselves or hold what no other does, the group is blocked:
    senders wait, and `get_info_group(group).blocked` says for which members. The program may then say that
    `minimum` members are enough, this one and witnesses included. How many that is is its own
    policy: a bank wants more than half, a multiplication of matrices is content with one. What only
    the missing members held is lost; the group has a new lineage (`view.lineage`), and they are
    expelled when they come back. If several members reset at once it is rebuilt once.

    Returns the new view, which all receive as `Left` events too. Raises NotPrimary if fewer have
    answered (it may be tried again), OrcalikeError if the group is not blocked, ValueError for a
    `minimum` below 1, GroupClosed.
    """
    check_minimum(minimum)
    refuse_loop("reset_group")
    if isinstance(group._inbox.failure, GroupClosed):
        raise fresh(group._inbox.failure)
    return resetting.reset(group._session, minimum, seconds_of(timeout), group._lower_degrees)


def leave_group(group: MessageGroup, *, timeout: Duration = LEAVE_WITHIN) -> None:
    """LeaveGroup: leave; all receive `Left`, this member as its last event.

    A group that does not answer within `timeout` seconds is left all the same.
    """
    within = seconds_of(timeout)
    refuse_loop("leave_group")
    group._leave(LEAVE_WITHIN if within is None else within)


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
