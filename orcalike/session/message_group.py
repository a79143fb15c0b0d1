"""One membership in a group for messages: what sends, receives and leaves, and waits for it."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NoReturn

import msgpack

from orcalike.runtime import waits
from orcalike.runtime.errors import GroupClosed, InvocationTimeout
from orcalike.runtime.event_loops import refuse_on_loop
from orcalike.runtime.raising import fresh
from orcalike.session.after_fork import closed_in_child, memberships
from orcalike.session.leaving import Leaving
from orcalike.session.message_inbox import DATA, ENDED, LOWERED, Event, Inbox
from orcalike.session.options import JoinOptions
from orcalike.session.session import Session
from orcalike.session.waiting import SAY_EVERY
from orcalike.transport.drivers.deferral import held, held_or_undone
from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.errors import NotEnoughMembers
from orcalike.transport.stack import Stack
from orcalike.transport.wire.message import Message
from orcalike.transport.wording import counted

_log = logging.getLogger("orcalike")

LONG = 0.05
"""Seconds after which one that waits for an event is held up: a member that would send may be stopped."""


class MessageGroup:
    """A membership in a group: what `create_group` and `join_group` return, and the primitives take.

    It has no public methods: the primitives are those of Amoeba, functions by the names of its table 1.
    """

    def __init__(self, options: JoinOptions) -> None:
        self._session = Session(options, self._make_inbox, Inbox)
        self._session.cast_ended = self._cast_ended
        self._leaving = Leaving()
        memberships.add(self)

    if not TYPE_CHECKING:  # type checkers find the mistake by themselves

        def __enter__(self) -> NoReturn:
            raise TypeError("a group for messages is no block: leave it by `leave_group(group)`")

        __exit__ = __aenter__ = __aexit__ = __enter__

    def _make_inbox(self, stack: Stack, session: Session) -> Inbox:
        self._inbox = Inbox(stack, session)
        return self._inbox

    def _cast_ended(self, ranks: set[int]) -> None:
        body = ENDED + b"".join(map(msgpack.packb, sorted(ranks)))
        self._session.pump.call(self._session.stack.cast, Message(body))

    @held
    def _send(self, data: bytes, timeout: float | None) -> None:
        inbox, pump = self._inbox, self._session.pump
        number = ticket = 0
        taken: list[bool] = []
        returned = Waitable()
        room: Waitable | None = None
        end = None if timeout is None else time.monotonic() + timeout
        refuse_loop("send_to_group")

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
            message = Message(DATA + data)
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
                        f"a message of {counted(len(data), 'byte')} found no room within {timeout} s: what "
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
                f"a message of {counted(len(data), 'byte')} was not ordered within {timeout} s; "
                "it may be yet",
                "unknown",
            )

    def _attend(self, waitable: Waitable, end: float | None, what: str) -> bool:
        """Wait in this thread; each 10 s the log has why. False when the time is over."""
        session, inbox, reported = self._session, self._inbox, False
        try:
            while True:
                too_few = inbox.too_few()
                if too_few is not None:
                    reported = True
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
            if reported:
                session.lacks_members(0)

    def _raise_not_sent(self, size: int, timeout: float | None) -> NoReturn:
        """The time of a message is over that had not left this member, and never will."""
        what = f"a message of {counted(size, 'byte')} was not sent within {timeout} s"
        if (too_few := self._inbox.too_few()) is not None:
            raise NotEnoughMembers(f"{what}: {too_few}")
        raise InvocationTimeout(what, "withdrawn")

    def _take(self, timeout: float | None) -> Event:
        """The next event, for which this thread waits."""
        inbox = self._inbox
        refuse_loop("receive_from_group")
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
            self._session.stack.cast(Message(LOWERED), now)

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
            if not (self._comes(receiver, end, LONG) or self._comes(receiver, end)):
                raise TimeoutError(f"no event within {timeout} s")
        finally:
            waits.leave()
            with self._inbox.lock:
                if receiver in self._inbox.receivers:
                    self._inbox.receivers.remove(receiver)

    def _comes(self, receiver: Waitable, end: float | None, within: float | None = None) -> bool:
        """Whether an event comes `within` so many seconds, or without that at all, before the time is over."""
        session, rest = self._session, _rest(end)
        if rest == 0.0:
            return False
        if within is None:
            session.pump.call(session.stack.held_up)
            return session.pump.attend(receiver, rest)
        return session.pump.attend(receiver, within if rest is None else min(rest, within))

    def _abandon(self) -> None:
        """This is a forked child: the group is its parent's."""
        if not isinstance(self._inbox.failure, GroupClosed):
            self._inbox.abandon(closed_in_child(self._session.address))
            self._session.abandon()

    @held
    def _leave(self, timeout: float) -> None:
        if isinstance(self._inbox.failure, GroupClosed) or self._leaving.is_begun():
            return
        closed = GroupClosed(f"the group {self._session.options.name!r} was left")
        try:
            self._session.leave(timeout)
        finally:  # a handler may have raised; it is left all the same
            self._inbox.fail_all(closed)
            self._leaving.over()


def refuse_loop(what: str) -> None:
    """Raise BlockingInLoop if an event loop runs on this thread that others depend on."""
    refuse_on_loop(what, f"await asyncio.to_thread({what}, ...)")


def _rest(end: float | None) -> float | None:
    """The seconds until then; None for a time that never comes."""
    return None if end is None else max(end - time.monotonic(), 0.0)
