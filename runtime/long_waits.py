"""Waits that take long: the log says why a call waits.

A thread's wait comes by here when it has lasted for a moment (`began`), and then every 10 s; so a
call that returns soon pays nothing. The coroutines of a process share one deadline of the stack, which
there is while any of them waits: with a timer of its own an event loop has one set in the kernel each time
it sleeps, which takes longer than to receive a message. After 10 s the log has, once for each call, why it waits; a call that the group
cannot let go on (it is blocked, or has too few members for a degree) is named again every 10 s.

If all threads of a member wait for guards or at the barrier, it reports so in the order (`Code.IDLE`),
with the calls. So all members know of calls that wait for each other, or that nothing can let
go on any more, and each logs them. A member whose program runs on an event loop is never idle: what
else its loop waits for is not known.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.runtime import waits
from orcalike.runtime.call import Call, waiting_reads
from orcalike.runtime.codes import Code
from orcalike.runtime.degrees import Degrees
from orcalike.runtime.invocation import Invocation, name_of
from orcalike.runtime.replica import LOCKED, QUEUED, Replica
from orcalike.runtime.sender import Sender
from orcalike.runtime.task import holder_of
from orcalike.transport.errors import OrcalikeError
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View
from orcalike.transport.wording import counted, listed

if TYPE_CHECKING:
    from orcalike.runtime.events import Events

LOOK_AGAIN = 5_000_000_000
"""Nanoseconds between two looks at what coroutines wait for, while any does."""
NAMED_MAX = 5
"""Calls that one line names."""

UNSEEN = -1
"""In the place of a call's number: other members cannot see whether it still waits."""

_log = logging.getLogger("orcalike")


if TYPE_CHECKING:

    class Knowing(Protocol):
        """What the group itself does, as far as long waits take it."""

        def waits_of_own(self) -> list[tuple[int, str]]:
            """The number and the name of each of this member's finds and arrivals that wait."""

        def still_waits(self, source: int, ticket: int) -> bool:
            """Whether a call of a member waits for its guard, or at the barrier."""

        def why(self, invocation: Invocation[Any]) -> str | None:
            """What a find or an arrival of this member's waits for; None for any other call."""

    class Waiting(Protocol):
        """The runtime, as far as calls that wait long take it."""

        @property
        def stack(self) -> Stack:
            """Which is to know of them."""

        @property
        def events(self) -> Events:
            """Which know why the group cannot go on."""

        @property
        def sender(self) -> Sender:
            """Which knows what is under way."""

        @property
        def degrees(self) -> Degrees:
            """Which know how many members there must be."""

        @property
        def manager(self) -> Knowing:
            """Which knows the calls that wait for no object."""

        @property
        def view(self) -> View:
            """The one in which messages are delivered."""

        @property
        def incarnation(self) -> int:
            """Of this member."""

        @property
        def replicas(self) -> list[Replica | None]:
            """By number."""

        @property
        def waiting(self) -> dict[tuple[int, int], Call]:
            """By incarnation and ticket: the calls that wait for their guards."""

        @property
        def dispatched(self) -> int:
            """Messages so far."""

        def wake_in(self, ns: int) -> None:
            """Have `expire` called after so long, if no earlier time is set."""


class LongWaits:
    """Calls that wait long in one group, in this process."""

    def __init__(self, runtime: Waiting) -> None:
        self._runtime = runtime
        self._looks: list[list[Invocation[Any]]] = [[], []]
        """What coroutines waited for at the last two looks."""
        self._threads: dict[int, Invocation[Any]] = {}
        """What threads wait for, by identity."""
        self._logged: set[int] = set()
        """The identities of invocations whose reason has been logged, while they wait."""
        self._lacking: set[int] = set()
        """Those that wait for more members, as reported to the launcher."""
        self.idle: dict[int, tuple[int, list[tuple[int, str]]]] = {}
        """By incarnation: the members all of whose threads wait, since when and for which calls.

        When: how many messages besides these reports had been dispatched."""
        self._idle_messages = 0
        self._look_at: int | None = None
        """When to look at what coroutines wait for, ns of the stack's clock; None if no time is set."""
        self._named: set[frozenset[tuple[int, tuple[tuple[int, str], ...]]]] = set()
        """Idle members and their calls that were named already."""

    # A thread.

    def began(self, invocation: Invocation[Any]) -> None:
        """A thread's wait begins to be long."""
        self._threads[id(invocation)] = invocation
        waits.note_guard(partial(self._is_guarded, invocation))
        self._runtime.sender.driver.later(self._report_waits)
        self._note_lacking(invocation)

    def _report_waits(self) -> None:
        """The stack is to know that calls wait: the member that they wait for may be stopped."""
        self._runtime.sender.driver.call(self._runtime.stack.held_up)

    def is_any(self) -> bool:
        """Whether a call of this member waits: a thread's, once it has for a moment, a coroutine's, or one of the group."""
        runtime = self._runtime
        receipts = runtime.sender.receipts
        found = (
            self._threads
            or runtime.sender.awaited()
            or runtime.manager.waits_of_own()
            or (receipts is not None and receipts.holds_any())
        )
        if not found:
            runtime.sender.watching = False  # the next coroutine that waits says so
        return bool(found)

    def still_waiting(self, invocation: Invocation[Any]) -> None:
        """It has lasted for another 10 s."""
        self._note_lacking(invocation)
        self._log_why([invocation])
        if waits.all_wait():
            self._report_idle()

    def over(self, invocation: Invocation[Any]) -> None:
        """It has ended, however it did."""
        self._threads.pop(id(invocation), None)
        self._logged.discard(id(invocation))
        self._lacks_no_more({id(invocation)})

    def log_full(self) -> None:
        """A thread has waited for 10 s until it may send more."""
        why = self._runtime.events.why_stuck() or self._runtime.degrees.too_few()
        why = why or "what was sent before is not ordered yet"
        _log.warning("a call waits for room to be sent: %s", why)

    # Coroutines.

    def watch(self) -> None:
        """A coroutine begins to wait, and no look is to come; from its thread, which must not wait here."""
        self._runtime.sender.driver.later(self._look_again)

    def _look_again(self) -> None:
        self._runtime.sender.driver.call(self._set_time)

    def _set_time(self, now: int) -> None:
        if self._look_at is None:
            self._look_at = now + LOOK_AGAIN
            self._runtime.wake_in(LOOK_AGAIN)
        self._runtime.stack.held_up(now)

    def expire(self, now: int) -> None:
        """A deadline has come, perhaps this one."""
        if self._look_at is None:
            return
        if now < self._look_at:
            self._runtime.wake_in(self._look_at - now)
        else:
            self._look_at = None
            self._runtime.sender.driver.later(self._look)

    def _look(self) -> None:
        """Which calls wait now, and did at the last two looks?"""
        awaited: list[Invocation[Any]] = self._runtime.sender.awaited()
        before = {id(each) for each in self._looks[0]} & {id(each) for each in self._looks[1]}
        for invocation in awaited:
            self._note_lacking(invocation)
        self._log_why([each for each in awaited if id(each) in before])
        ended = {id(each) for look in self._looks for each in look} - set(map(id, awaited))
        self._logged -= ended
        self._lacks_no_more(ended)
        self._looks = [self._looks[1], awaited]
        if awaited:
            self._look_again()
        else:
            self._looks = [[], []]
            self._runtime.sender.watching = False

    # Why.

    def reasons(self) -> list[str]:
        """A line for each call that waits, with its reason; only where nothing is dispatched."""
        awaited = [*list(self._threads.values()), *self._runtime.sender.awaited()]
        calls = {id(invocation): invocation for invocation in awaited}.values()
        guarded = self._guarded()
        return [
            f"{_call(invocation)} waits: {self._stuck(invocation) or self._why(invocation, guarded)}"
            for invocation in calls
            if not invocation.done()
        ]

    def _stuck(self, invocation: Invocation[Any]) -> str | None:
        """Why the group cannot let a call go on; None if it can."""
        stuck: str | None = self._runtime.events.why_stuck()
        needed = self._members_needed(invocation)
        if stuck is None and needed and not invocation.done():
            stuck = self._runtime.degrees.say_too_few(needed - 1)
        return stuck

    def _members_needed(self, invocation: Invocation[Any]) -> int:
        """How many members with replicas there must be for a call to go on; 0 for no more than there are."""
        sender, degrees = self._runtime.sender, self._runtime.degrees
        if not degrees.single and not sender.has_place(invocation):
            degree = sender.degree_of(invocation)
            if degree > 0 and degrees.is_too_small(degree):
                return degree + 1
        wanted = 0 if sender.receipts is None else sender.receipts.wanted_of(invocation)
        return 0 if wanted <= len(self._runtime.view.replicas) else wanted

    def _note_lacking(self, invocation: Invocation[Any]) -> None:
        """Report to the launcher a call that waits for more members."""
        needed = self._members_needed(invocation)
        if needed and id(invocation) not in self._lacking:
            self._lacking.add(id(invocation))
            self._runtime.events.lacks_members(needed)

    def _lacks_no_more(self, ended: set[int]) -> None:
        if self._lacking & ended:
            self._lacking -= ended
            if not self._lacking:
                self._runtime.events.lacks_members(0)

    def _log_why(self, invocations: list[Invocation[Any]]) -> None:
        """Log why calls wait: once for each, but each time where the group is what it waits for.

        Thousands of coroutines may wait for the same: that is one line, and one look at what is parked.
        """
        guarded = self._guarded()
        lines: Counter[tuple[int, str, str]] = Counter()
        for invocation in invocations:
            stuck = self._stuck(invocation)
            if stuck is None and id(invocation) in self._logged:
                continue
            self._logged.add(id(invocation))
            # To wait for a guard for long may be what a program does all day.
            quiet = stuck is None and id(invocation) in guarded
            level = logging.INFO if quiet else logging.WARNING
            lines[level, _call(invocation), stuck or self._why(invocation, guarded)] += 1
        for (level, call, why), count in lines.items():
            _log.log(level, "%s waits%s: %s", call, f" ({count} calls)" if count > 1 else "", why)

    def parked(self) -> Iterator[Call]:
        """The calls here that wait for guards: writes of all members, this one's own reads."""
        yield from list(self._runtime.waiting.values())
        for replica in self._runtime.replicas:
            if replica is not None:
                yield from waiting_reads(replica)

    def _is_guarded(self, invocation: Invocation[Any]) -> bool:
        return any(call.invocation is invocation for call in self.parked())

    def _guarded(self) -> set[int]:
        """The identities of the invocations that wait for guards here."""
        return {id(call.invocation) for call in self.parked() if call.invocation is not None}

    def _why(self, invocation: Invocation[Any], guarded: set[int]) -> str:
        """What a call waits for, if the group as such can go on."""
        if id(invocation) in guarded:
            return f"its guard is false{self._others(invocation)}"
        found: str | None = self._runtime.manager.why(invocation)
        if found is not None:
            return found
        receipts = self._runtime.sender.receipts
        if receipts is not None and receipts.is_held(invocation):
            wanted = counted(receipts.wanted_of(invocation), "member")
            return f"it has run here, and is to be applied by {wanted}"
        if not self._runtime.sender.has_place(invocation):
            if self._runtime.stack.focus("RING") is not None:
                return "it has not come here in the order yet, which is in shared memory"
            return f"it has no place in the order yet; {self._runtime.view.sequencer} orders"
        replica = invocation.replica
        if isinstance(replica, Replica) and replica.has(LOCKED | QUEUED):
            function = getattr(holder_of(replica), "function", None)
            runs = "an operation" if function is None else name_of(function)
            return f"{runs} has the object's mutex"
        return "an operation before it has not ended"

    def _others(self, invocation: Invocation[Any]) -> str:
        """What else waits for guards in the group."""
        waiting = self._runtime.waiting
        mine = waiting.get((self._runtime.incarnation, invocation.ticket))
        count = len(waiting) - (mine is not None and mine.invocation is invocation)
        if not count:
            return "; no other call waits for one"
        others = (call for call in waiting.values() if call.invocation is not invocation)
        named = [
            f"{_title(call)}, called by {self._member(call.source)}"
            for call in islice(others, NAMED_MAX)
        ]
        more = f" and {count - NAMED_MAX} more" if count > NAMED_MAX else ""
        return f"; so are those of {'; '.join(named)}{more}"

    def _member(self, incarnation: int | None) -> str:
        view = self._runtime.view
        place = -1 if incarnation is None else view.position(incarnation)
        return str(view.members[place]) if place >= 0 else "a member that left"

    # Members that are idle.

    def _now(self) -> int:
        """How many messages were dispatched, besides the reports that a member is idle."""
        dispatched: int = self._runtime.dispatched
        return dispatched - self._idle_messages

    def _report_idle(self) -> None:
        """Report in the order that all threads of this member wait, if all do for guards."""
        runtime = self._runtime
        mine: list[tuple[int, str]] = [
            (ticket, _title(call))
            for (source, ticket), call in list(runtime.waiting.items())
            if source == runtime.incarnation
        ]
        mine += runtime.manager.waits_of_own()
        mine += [(UNSEEN, _title(call)) for call in self.parked() if call.is_read]
        known = self.idle.get(runtime.incarnation)
        if len(mine) < len(waits.waiting) or (known is not None and known[1] == mine):
            return
        try:
            runtime.sender.post(Code.IDLE, tuple(mine), "what this member waits for", 0)
        except OrcalikeError as error:
            _log.info("what this member waits for was not reported to the group: %s", error)

    def note_idle(self, member: Member, calls: list[tuple[int, str]]) -> None:
        """A member is idle, at this place in the order."""
        self._idle_messages += 1
        self.idle[member.incarnation] = (self._now(), calls)
        self._name_idle()

    def _is_idle(self, incarnation: int) -> bool:
        """Whether a member that was idle still is, as far as that is known here."""
        since, calls = self.idle[incarnation]
        manager = self._runtime.manager
        return all(
            self._now() == since if number == UNSEEN else manager.still_waits(incarnation, number)
            for number, _ in calls
        )

    def _name_idle(self) -> None:
        """Name the members that wait for each other, or for nothing that can come."""
        members = {member.incarnation: member for member in self._runtime.view.replicas}
        self.idle = {
            each: calls
            for each, calls in self.idle.items()
            if each in members and self._is_idle(each)
        }
        key = frozenset((each, tuple(calls)) for each, (_, calls) in self.idle.items())
        if len(self.idle) < min(2, len(members)) or key in self._named:
            return
        self._named.add(key)
        named = "; ".join(
            f"{member} in {', '.join(text for _, text in self.idle[each][1])}"
            for each, member in members.items()
            if each in self.idle
        )
        others = [member for each, member in members.items() if each not in self.idle]
        rest = "nothing can let them go on: all threads of all members wait"
        if others:
            rest = f"only {listed(others)} can let them go on"
        _log.warning("calls wait for each other: %s; %s", named, rest)


def _call(invocation: Invocation[Any]) -> str:
    """`JobQueue.get of 'jobs'`, of a call of this process."""
    name = name_of(invocation.operation)
    return name if invocation.replica is None else f"{name} of {invocation.replica.name!r}"


def _title(call: Call) -> str:
    """`JobQueue.get of 'jobs'`."""
    names = " and ".join(repr(replica.name) for replica in call.replicas)
    return f"{name_of(call.function)} of {names}" if names else name_of(call.function)
