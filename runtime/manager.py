"""What the group itself does, as object 0: create, find, drop (`object_table`), and the rest here.

These are invocations like others: they have a place in the order, and every replica does the same
at that place (A09). What they leave behind (names, the barrier, the ended ranks) is part of the state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.runtime.call import Call, is_fault
from orcalike.runtime.changes import Fence, ViewChange, Withdrawal
from orcalike.runtime.codes import Code, check_fields, ended_ranks
from orcalike.runtime.degrees import Degrees
from orcalike.runtime.digests import Digests
from orcalike.runtime.divergence import diverged
from orcalike.runtime.errors import (
    ClassMismatch,
    ObjectDropped,
    TooManyWaiting,
    Unreadable,
)
from orcalike.runtime.forks import Forks
from orcalike.runtime.invocation import Invocation, name_of, withdrawal_error
from orcalike.runtime.long_waits import UNSEEN, LongWaits
from orcalike.runtime.object_table import ObjectTable
from orcalike.runtime.replica import (
    DROPPED,
    LOCKED,
    QUEUED,
    UNDECLARED,
    Replica,
)
from orcalike.runtime.sender import Sender
from orcalike.runtime.task import bound_together, queued_at
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.view import Member, View
from orcalike.transport.wording import listed

if TYPE_CHECKING:
    from orcalike.runtime.changes import Changing

WAITING_MAX = 65_536
"""Arrivals of one member that may wait at the barrier."""

VIEW_INDEX = (1 << 32) - 1
"""The index of what happens at a view, whose number is the seqno: no message has it."""

_log = logging.getLogger("orcalike")


if TYPE_CHECKING:

    class Managing(Changing, Protocol):
        """The runtime, as far as the operations of the group itself take it."""

        @property
        def sender(self) -> Sender:
            """For what is invoked here."""

        @property
        def table(self) -> ObjectTable:
            """With the operations that make, find and end objects."""

        @property
        def degrees(self) -> Degrees:
            """Of the group and its objects."""

        @property
        def digests(self) -> Digests | None:
            """None if states are not compared."""

        @property
        def long_waits(self) -> LongWaits:
            """For members all of whose threads wait."""

        @property
        def view(self) -> View:
            """The one in which messages are delivered."""

        def member_at(self, position: int) -> Member:
            """The member at a position, or one that left."""


class Manager:
    """Object 0 of one group: its operations, and what belongs to no object."""

    def __init__(self, runtime: Managing, seed: int = 0) -> None:
        self.runtime = runtime
        self.seed = seed
        """What `orcalike.random` begins with: the group's, once its state is here."""
        self.ended: set[int] = set()
        """The ranks of the program that have ended."""
        self.expected: set[int] = set()
        """The members that the barrier waits for; empty if none has arrived."""
        self.arrived: dict[int, list[int]] = {}
        """The members that have arrived at the barrier, and the tickets of the arrivals: a thread's each."""
        self.stamp = 0
        """The moment of the view at which this member's state begins."""
        self.forks = Forks(runtime)
        """Processes that members start for each other."""
        self._arrivals: dict[int, Invocation[Any]] = {}
        """This member's own arrivals at the barrier, by ticket."""
        self._operations: dict[int, Callable[..., None]] = {
            Code.CREATE: runtime.table.create,
            Code.FIND: runtime.table.find,
            Code.DROP: runtime.table.drop,
            Code.WITHDRAW: self._withdraw,
            Code.FENCE: self._fence,
            Code.BARRIER: self._barrier,
            Code.ENDED: self._end,
            Code.AVAILABLE: self._lower_degrees,
            Code.IDLE: self._idle,
            Code.FORK: self.forks.fork,
            Code.FORKED: self.forks.forked,
            Code.DIGESTS: self._digests,
        }

    def dispatch(
        self, source: int, ticket: int, code: int, raw: bytes, invocation: Invocation[Any] | None
    ) -> None:
        """Run one of the group's own operations; what it raises is its outcome."""
        if code == Code.VOID:
            return
        member = self.runtime.member_at(source)
        try:
            operation = self._operations.get(code)
            if operation is None:
                raise ProtocolError(f"the group has no operation {code}")
            operation(member, ticket, invocation, *self._decode(code, raw))
        except (OrcalikeError, TypeError, MemoryError, RecursionError) as error:
            self.failed(code, member, invocation, error)

    def failed(
        self, code: int, member: Member, invocation: Invocation[Any] | None, error: Exception
    ) -> None:
        """One of the group's own operations has raised this."""
        if is_fault(error):
            diverged(self.runtime, "the group", None, error)
        if invocation is not None:
            invocation.set_error(error)
        elif not isinstance(error, ClassMismatch | ObjectDropped):
            _log.error("operation %d of the group, from %s, failed: %s", code, member, error)

    def _decode(self, code: int, raw: bytes) -> list[Any]:
        try:
            values: list[Any] = self.runtime.sender.codec.decode(raw)
        except Unreadable as error:
            raise error.of(f"{Code(code).name.lower()} of the group") from None
        check_fields(code, values)
        return values

    def _lower_degrees(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None
    ) -> None:
        """A program has said that what there is of members must be enough for every degree."""
        self.runtime.degrees.lower()
        if member.incarnation == self.runtime.incarnation:
            self.runtime.sender.hurry_others()  # their own writes that lack members may go
        if invocation is not None:
            invocation.set_result(None)

    # Calls that wait long.

    def _digests(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        view_number: int,
        mode: int,
        values: int,
        packed: bytes,
    ) -> None:
        if self.runtime.digests is not None:
            self.runtime.digests.received(member, view_number, mode, values, packed)

    def _idle(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, *calls: Any
    ) -> None:
        """All threads of a member wait for these calls."""
        waiting: list[tuple[int, str]] = []
        for call in calls:
            match call:
                case (int(number), str(text)):
                    waiting.append((number, text))
                case _:
                    raise ProtocolError(f"{member} waits for what is no call")
        self.runtime.long_waits.note_idle(member, waiting)

    def waits_of_own(self) -> list[tuple[int, str]]:
        """The number of each of this member's finds and arrivals that wait, and its name."""
        waits = {ticket: (UNSEEN, find[0]) for ticket, find in self.runtime.table.finds.items()}
        waits |= {ticket: (ticket, arrival) for ticket, arrival in self._arrivals.items()}
        return [(number, name_of(call.operation)) for _, (number, call) in sorted(waits.items())]

    def still_waits(self, source: int, ticket: int) -> bool:
        """Whether a call of a member waits for its guard, or at the barrier."""
        waits = (source, ticket) in self.runtime.waiting
        return waits or ticket in self.arrived.get(source, ())

    def why(self, invocation: Invocation[Any]) -> str | None:
        """What one of this member's finds and arrivals waits for; None for any other call."""
        find = self.runtime.table.finds.get(invocation.ticket)
        if find is not None and find[0] is invocation:
            return "no member has shared an object of that name"
        if self._arrivals.get(invocation.ticket) is not invocation:
            return self.forks.why(invocation)
        members = [m for m in self.runtime.view.replicas if m.incarnation in self.expected]
        late = [member for member in members if member.incarnation not in self.arrived]
        return f"{listed(late)} did not come to the barrier yet"

    # Withdrawal.

    def send_withdrawal(self, ticket: int) -> None:
        """Ask, in the order, that this member's invocation `ticket` shall not run any more."""
        self.runtime.sender.post(Code.WITHDRAW, (ticket,), "withdrawal")

    def _withdraw(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, withdrawn: int
    ) -> None:
        for replicas in self._objects_of(member.incarnation, withdrawn):
            withdrawal = Withdrawal(self.runtime, member.incarnation, withdrawn)
            withdrawal.at(*self.runtime.place_of()).submit_for(replicas)
        arrivals = self.arrived.get(member.incarnation, [])
        if withdrawn in arrivals:
            arrivals.remove(withdrawn)
            if not arrivals:
                del self.arrived[member.incarnation]
        self.forks.withdraw(member.incarnation, withdrawn)
        if self._is_me(member):
            find = self.runtime.table.finds.pop(withdrawn, None)
            waiting = self._arrivals.pop(withdrawn, None) if find is None else find[0]
            if waiting is not None:
                waiting.set_error(withdrawal_error(waiting))

    def _objects_of(self, source: int, ticket: int) -> list[list[Replica]]:
        """The objects at which a withdrawal is to come behind its call, together or each by itself.

        A call that another thread has taken out of the lock queue is found nowhere while its guard is tried.
        So the withdrawal queues at each object that was busy before the call was looked for.
        """
        busy = self._busy()
        call: Call | None = self.runtime.waiting.get((source, ticket))
        if call is not None:
            return [call.replicas]
        for replica in self.runtime.replicas:
            for task in queued_at(replica) if replica is not None else ():
                if isinstance(task, Call) and (task.source, task.ticket) == (source, ticket):
                    return [task.replicas]
        return [[replica] for replica in busy if not replica.has(UNDECLARED)]

    def _busy(self) -> list[Replica]:
        """The objects that something holds, or at which something queues."""
        return [
            replica
            for replica in self.runtime.replicas
            if replica is not None and replica.has(LOCKED | QUEUED) and not replica.has(DROPPED)
        ]

    def _is_me(self, member: Member) -> bool:
        return bool(member.incarnation == self.runtime.incarnation)

    # The whole group.

    def _fence(self, member: Member, ticket: int, invocation: Invocation[Any] | None) -> None:
        if self._is_me(member) and self.runtime.sender.receipts is not None:
            self.runtime.sender.receipts.marked(ticket)
        if invocation is None:
            return
        busy = [replica for replica in self._busy() if not replica.has(UNDECLARED)]
        Fence(invocation).at(*self.runtime.place_of()).submit_for(busy)

    def _barrier(self, member: Member, ticket: int, invocation: Invocation[Any] | None) -> None:
        if self.runtime.view.position(member.incarnation) < 0:
            return  # it has left since
        if not self.arrived:
            self.expected = {other.incarnation for other in self.runtime.view.replicas}
        arrivals = self.arrived.setdefault(member.incarnation, [])
        if len(arrivals) >= WAITING_MAX:  # the same at each replica
            raise TooManyWaiting(
                f"{WAITING_MAX} arrivals of this member wait at the barrier already"
            )
        arrivals.append(ticket)
        if invocation is not None:
            self._arrivals[ticket] = invocation
        self._open_barrier()

    def _open_barrier(self) -> None:
        if not self.arrived or not self.expected <= self.arrived.keys():
            return
        self.arrived, self.expected = {}, set()
        arrivals, self._arrivals = self._arrivals, {}
        for invocation in arrivals.values():
            invocation.set_result(None)

    def _end(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, *ranks: object
    ) -> None:
        self.ended |= ended_ranks(ranks)
        self.runtime.events.ended(self.ended)

    # The change of view.

    def view_changed(self, before: View | None, view: View) -> None:
        """What happens at a view's place in the order (A09)."""
        self.runtime.degrees.count()
        if before is not None:
            left = [m for m in before.replicas if view.position(m.incarnation) < 0]
            joined = [m for m in view.replicas if before.position(m.incarnation) < 0]
            gone = {member.incarnation for member in left}
            self.expected -= gone
            self.arrived = {key: t for key, t in self.arrived.items() if key not in gone}
            self._change_view(left, joined, view.number)
            self._open_barrier()
            self.forks.view_changed(view)

    def left_already(self, member: Member) -> None:
        """A packet of a member was delivered that had left before: what it did there is undone.

        `member_left` runs once more, so that a lock, for one, that it took after all is released.
        """
        if not member.witness:
            self._change_view([member], [], self.runtime.place_of()[0])

    def _change_view(self, left: list[Member], joined: list[Member], seqno: int) -> None:
        done: set[Replica] = set()
        for replica in self.runtime.replicas:
            if replica is not None and replica not in done:
                together = bound_together(replica)
                done.update(together)
                present = [each for each in together if not each.has(DROPPED)]
                change = ViewChange(self.runtime, left, joined)
                change.at(seqno, VIEW_INDEX, self.runtime.place_of()[2]).submit_for(present)

    def fail_all(self, error: Exception) -> None:
        """Nothing that waits here will have an outcome any more."""
        table = self.runtime.table
        waiting = {ticket: find[0] for ticket, find in table.finds.items()} | self._arrivals
        table.finds, self._arrivals = {}, {}
        for _, invocation in sorted(waiting.items()):
            invocation.set_error(error)
        self.forks.fail_all(error)
        for replica in self.runtime.replicas:
            if replica is not None:
                replica.fail_reads(error)
                for task in queued_at(replica):
                    if not task.is_read:  # a read shows the state that there is
                        task.fail(error)

    # State.

    def forget(self) -> None:
        """This member joins anew, or its state comes anew: nothing that was known holds any more."""
        self.ended, self.expected, self.arrived = set(), set(), {}
        self._arrivals = {}
        self.runtime.degrees.least = 0
        self.runtime.table.forget()

    def snapshot(self) -> tuple[object, ...]:
        """What belongs to no object."""
        stamp = self.runtime.place_of()[2]
        degree = self.runtime.degrees.group
        available = self.runtime.degrees.available
        return (
            *(list(self.ended), list(self.expected), self.arrived, stamp, degree),
            *(available, self.seed),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Make it what `snapshot` gave; the names come with the objects."""
        ended, expected, self.arrived, self.stamp, degree, available, self.seed = state
        self.runtime.degrees.available = available
        self.runtime.degrees.group = degree
        self.ended, self.expected = ended_ranks(ended), set(expected)
        if self.ended:
            self.runtime.events.ended(self.ended)
