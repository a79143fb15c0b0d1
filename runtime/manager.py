"""What the group itself does, as object 0: create, find, drop, withdraw, fence, barrier, atomic.

These are invocations like others: they have a place in the order, and every replica does the same
at that place (A09). What they leave behind (names, the barrier, the ended ranks) is part of the state.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from orcalike.runtime import classes
from orcalike.runtime.audit import why_not
from orcalike.runtime.changes import (
    Drop,
    Fence,
    Hook,
    ViewChange,
    Withdrawal,
    withdrawal_error,
)
from orcalike.runtime.codes import Code, Ran
from orcalike.runtime.errors import (
    ClassMismatch,
    NotSerializable,
    ObjectDropped,
    ReplicaDivergence,
    TooManyWaiting,
    Unreadable,
)
from orcalike.runtime.invariants import check_invariants
from orcalike.runtime.invocation import Invocation, name_of
from orcalike.runtime.long_waits import UNSEEN
from orcalike.runtime.raising import fresh
from orcalike.runtime.remains import Remains
from orcalike.runtime.replica import Replica
from orcalike.runtime.state import decode_pieces, set_plain_state
from orcalike.runtime.strict import guard_attributes
from orcalike.runtime.task import Call, bound_together, go_on, is_fault, never
from orcalike.transport.degree import ALL, AVAILABLE, NUMBER_MAX, largest_of, least_of
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.view import Member, View

LOCKED, QUEUED, DROPPED, UNDECLARED, STRICT, RECORDED = 1, 2, 32, 64, 256, 512

ATOMIC_HEAD = 3
"""What comes before the arguments of an atomic function: its name, its digest, and their number."""

WAITING_MAX = 65_536
"""Arrivals of one member that may wait at the barrier, and finds of this one for their objects."""

VIEW_INDEX = (1 << 32) - 1
"""The index of what happens at a view, whose number is the seqno: no message has it."""

_log = logging.getLogger("orcalike")


class Manager:
    """Object 0 of one group: the object table, and what belongs to no object."""

    def __init__(self, runtime: Any, *, strict: bool = False, seed: int = 0) -> None:
        self.runtime = runtime
        self.seed = seed
        """What `orcalike.random` begins with: the group's, once its state is here."""
        self.strict = strict
        self._warned_of_seeds = False
        self.names: dict[str, int] = {}
        self.ended_objects = array("H")
        """By number: 1 + the place in `ended_classes` of its class, or 0 where it was not ended."""
        self.ended_classes: dict[tuple[str, bytes], int] = {}
        self._remains = Remains()
        self.ended: set[int] = set()
        self.expected: set[int] = set()
        """The members that the barrier waits for; empty if none has arrived."""
        self.arrived: dict[int, list[int]] = {}
        """The members that have arrived at the barrier, and the tickets of the arrivals: a thread's each."""
        self.refused: dict[int, str] = {}
        """The objects that were made with a state that cannot travel, by number, and why."""
        self.unmade: dict[int, Exception] = {}
        """The objects whose `__init__` has raised, by number, until they are dropped in the order: a
        member without the class does not know, and must free name and number at the same place."""
        self.lost: dict[int, str] = {}
        """The objects that this process can never use, by number, and why."""
        self._size = 0
        """Bytes of the operation of the group that runs now."""
        self.stamp = 0
        """The moment of the view at which this member's state begins."""
        self.lookup = classes.lookup
        """Finds what is declared; a simulated member may know less than its process."""
        self._said_single = False
        self.least = 0
        """R of H1, as far as the order has gone here."""
        self._own: dict[int, Invocation[Any]] = {}
        """This member's own finds and arrivals that wait, by ticket."""
        self._sought: dict[int, tuple[str, str, bytes]] = {}
        """Of the finds among them: the name, the class and its digest."""
        self._operations: dict[int, Callable[..., None]] = {
            Code.CREATE: self._create,
            Code.FIND: self._find,
            Code.DROP: self._drop,
            Code.WITHDRAW: self._withdraw,
            Code.FENCE: self._fence,
            Code.BARRIER: self._barrier,
            Code.ATOMIC: self._atomic,
            Code.ENDED: self._end,
            Code.AVAILABLE: self._lower_degrees,
            Code.IDLE: self._idle,
            Code.DIGESTS: self._digests,
        }

    def dispatch(
        self, source: int, ticket: int, code: int, raw: bytes, invocation: Invocation[Any] | None
    ) -> None:
        """Run one of the group's own operations; what it raises is its outcome."""
        if code == Code.VOID:
            return
        member = self.runtime.sender(source)
        self._size = len(raw)
        try:
            operation = self._operations.get(code)
            if operation is None:
                raise ProtocolError(f"the group has no operation {code}")
            operation(member, ticket, invocation, *self._decode(code, raw))
        except (OrcalikeError, TypeError, MemoryError, RecursionError) as error:
            if is_fault(error):
                self.runtime.diverged("the group", None, error)
            if invocation is not None:
                invocation.set_error(error)
            elif not isinstance(error, ClassMismatch | ObjectDropped):
                _log.error("operation %d of the group, from %s, failed: %s", code, member, error)

    def _decode(self, code: int, raw: bytes) -> list[Any]:
        try:
            values: list[Any] = self.runtime.codec.decode(raw)
        except Unreadable as error:
            if code == Code.ATOMIC and error.argument > ATOMIC_HEAD:
                error.argument -= ATOMIC_HEAD
                raise error.of(f"atomic {error.values[0]}") from None
            raise error.of(f"{Code(code).name.lower()} of the group") from None
        return values

    # Objects.

    def _create(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        name: str,
        class_name: str,
        digest: bytes,
        arguments: bytes,
        hashed: int,
        least: int,
    ) -> None:
        self._compare_seeds(member, class_name, hashed)
        number = self.names.get(name)
        if number is not None:
            self._bind(number, invocation, class_name, digest, arguments)
            return
        replica = Replica(
            self.runtime,
            len(self.runtime.replicas),
            name,
            class_name,
            digest,
            arguments,
            _digest(arguments),
            least,
        )
        self.runtime.replicas.append(replica)
        self.runtime.note_ran(replica, Ran.MADE)
        self.names[name] = replica.number
        self._count_degrees()
        info = self.lookup(class_name)
        if info is None or info.digest != digest:
            replica.hold(UNDECLARED)
            replica.pending = (*self.runtime.place_of(), member, ticket)
            return
        self.make(replica, info, self.runtime.place_of(), member, ticket, invocation)

    def _compare_seeds(self, member: Member, text: str, hashed: int) -> None:
        """Warn once where a member's hash seed is another: its sets of strings run otherwise."""
        if hashed != hash(text) and not self._warned_of_seeds:
            self._warned_of_seeds = True
            _log.warning(
                "%s has another hash seed: operations that iterate over sets of strings would "
                "differ there; start all members with one PYTHONHASHSEED, as `orcalike run` does",
                member,
            )

    def expect_other_seeds(self) -> None:
        """No warning: nothing that this group runs iterates over a set."""
        self._warned_of_seeds = True

    def make(
        self,
        replica: Replica,
        info: classes.ClassInfo,
        place: tuple[int, ...],
        creator: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
    ) -> None:
        """Make the object of a replica, and run its `__init__` at its place in the order."""
        shared = info.blank() if replica.object is None else replica.object
        failed: list[Exception] = []

        def init() -> object:
            try:
                assert replica.arguments is not None
                try:
                    *args, named = self.runtime.codec.decode(replica.arguments)
                except Unreadable as error:
                    raise error.of(f"{info.cls.__name__}.__init__", replica.name) from None
                if self.runtime.shadow is None:
                    shared.__init__(*args, **named)
                else:
                    self.runtime.shadow.make(replica, shared, info)
                check_invariants(shared, info, replica.name, f"{info.cls.__name__}.__init__")
            except Exception as error:
                failed.append(error)
                raise
            why = why_not(self.runtime.codec, replica)
            if why is not None:  # at its caller; all see it, and it is dropped in the order
                self.refused[replica.number] = f"{why}; so it cannot be shared"
                raise NotSerializable(self.refused[replica.number])
            return shared

        replica.hold(0)
        if replica.object is None:
            self.attach(replica, shared, info)
        call = Call(self.runtime, Hook(init, f"{info.cls.__name__}.__init__"), 0, None)
        call.of(creator, ticket, invocation).at(*place).run_held([replica])
        if failed:
            replica.mark(DROPPED)  # for what is in its queue
            replica.detach()
            replica.pending = (*place, creator, ticket)
            self.unmade[replica.number] = failed[0]
        else:
            replica.arguments = None
            self._found(replica)
        go_on(replica)
        if creator.incarnation == self.runtime.incarnation and (
            failed or replica.number in self.refused
        ):
            self._end_in_order(replica)

    def attach(self, replica: Replica, shared: object, info: classes.ClassInfo) -> None:
        """Give a replica its object."""
        replica.attach(shared, info)
        if self.strict:
            replica.mark(STRICT)
            guard_attributes(info.cls)
        if self.runtime.history is not None or self.runtime.shadow is not None:
            replica.mark(RECORDED)

    def _found(self, replica: Replica) -> None:
        for ticket, (name, class_name, digest) in list(self._sought.items()):
            if name == replica.name:
                del self._sought[ticket]
                invocation = self._own.pop(ticket, None)
                if invocation is not None:
                    self._give(replica, invocation, class_name, digest)

    def _give(
        self, replica: Replica, invocation: Invocation[Any], class_name: str, digest: bytes
    ) -> None:
        """Hand a replica's object to the caller that asked for it as that class."""
        if replica.number in self.unmade:
            invocation.set_error(fresh(self.unmade[replica.number]))
            self._end_in_order(replica)  # its creator may be gone
        elif replica.number in self.lost:
            invocation.set_error(NotSerializable(self.lost[replica.number]))
        elif replica.number in self.refused:
            invocation.set_error(NotSerializable(self.refused[replica.number]))
        elif (replica.class_name, replica.digest) != (class_name, digest) or replica.info is None:
            invocation.set_error(ClassMismatch(self._why_another(replica, class_name)))
        else:
            invocation.set_result(replica.object)

    def _why_another(self, replica: Replica, class_name: str) -> str:
        if replica.class_name != class_name:
            return (
                f"{replica.name!r} is shared as {replica.class_name}, and {class_name}, as asked "
                "for, is another class"
            )
        declared = self.lookup(class_name)
        if replica.info is not None and replica.info is not declared:
            return (
                f"{class_name} was declared again, with another source, after {replica.name!r} was "
                "shared: the object keeps the class that it was made of. Share it under another "
                "name, or end it first with group.drop, in each process that has the new source"
            )
        return (
            f"{replica.name!r} is shared as another version of {class_name}: all members must have "
            "the same source"
        )

    def _bind(
        self,
        number: int,
        invocation: Invocation[Any] | None,
        class_name: str,
        digest: bytes,
        arguments: bytes,
    ) -> None:
        if invocation is None:
            return
        replica = self.runtime.replicas[number]
        self._give(replica, invocation, class_name, digest)
        if invocation.exception() is None and replica.arguments_digest != _digest(arguments):
            _log.warning(
                "%r exists already, made with other arguments; those given here, %.1000s, are not used",
                replica.name,
                self.runtime.codec.decode(arguments),
            )

    def _end_in_order(self, replica: Replica) -> None:
        """Drop an object that could not be made; a fault of this process alone is no reason to."""
        if self.runtime.failure is None:
            degree = self.degree_of_change(replica.least)
            self.runtime.post(Code.DROP, (replica.number,), "drop", degree)

    def _find(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        name: str,
        class_name: str,
        digest: bytes,
    ) -> None:
        if invocation is None:
            return
        number = self.names.get(name)
        if number is None or number in self.unmade:
            if len(self._sought) >= WAITING_MAX:
                raise TooManyWaiting(f"{WAITING_MAX} finds wait for their objects already")
            self._own[ticket] = invocation
            self._sought[ticket] = (name, class_name, digest)
        else:
            self._give(self.runtime.replicas[number], invocation, class_name, digest)

    def _drop(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, number: int
    ) -> None:
        if not 0 < number < len(self.runtime.replicas) or self.runtime.replicas[number] is None:
            raise ObjectDropped("the object was ended already")
        replica = self.runtime.replicas[number]
        if self.names.get(replica.name) == number:
            del self.names[replica.name]  # at once: it is free from this place in the order on
            self._count_degrees()
        if self.runtime.digests is not None:
            self.runtime.digests.ended(replica)
        drop = Drop(self.runtime).at(*self.runtime.place_of())
        drop.invocation = invocation
        if replica.has(UNDECLARED):  # nothing here can tell what runs before that
            drop.end(replica)
        elif self.unmade.pop(number, None) is not None:
            self.bury(replica)
        else:
            drop.submit_for([replica])
        self.lost.pop(number, None)
        self.refused.pop(number, None)

    def bury(self, replica: Replica) -> None:
        """An object was ended: it leaves the table, and its number keeps its class.

        Others may refer to it still, in what they hold or in a message that is on its way; so a
        reference to it must be one at each replica, whatever became of the object there.
        """
        number, named = replica.number, (replica.class_name, replica.digest)
        self.runtime.replicas[number] = None
        if named not in self.ended_classes:
            self.ended_classes[named] = len(self.ended_classes) + 1
        self.ended_objects.extend([0] * (number + 1 - len(self.ended_objects)))
        self.ended_objects[number] = self.ended_classes[named]
        shared = replica.object
        if shared is not None:
            self._remains.add(replica, shared)

    def remains(self) -> list[tuple[Replica, object]]:
        """The objects that were ended and that the program still has."""
        return [(self.runtime.replica_of(shared), shared) for shared in self._remains.all()]

    def ended_object(self, number: int) -> object:
        """What a reference to an object that was ended refers to; None where it was never made."""
        shared = self._remains.get(number)
        if shared is not None:
            return shared
        kind = self.ended_objects[number] if number < len(self.ended_objects) else 0
        if kind == 0:
            return None
        class_name, digest = list(self.ended_classes)[kind - 1]
        info = self.lookup(class_name)
        if info is None or info.digest != digest:
            raise Unreadable(
                f"an object that was ended is referred to, and {class_name} is not declared here, "
                "or in another version: import its module before joining"
            )
        replica = Replica(
            self.runtime, number, f"object {number}", class_name, digest, None, b"", 0
        )
        shared = info.blank()
        self.attach(replica, shared, info)
        replica.mark(DROPPED)
        self._remains.add(replica, shared)
        return shared

    def declared(self, info: classes.ClassInfo | classes.AtomicInfo) -> None:
        """A class is declared in this process: objects of it that waited come to life."""
        for replica in self.runtime.replicas:
            if (
                isinstance(info, classes.ClassInfo)
                and replica is not None
                and replica.has(UNDECLARED)
                and (replica.class_name, replica.digest) == (info.name, info.digest)
                and not self.runtime.taker.takes(replica.number)
            ):
                self.come_to_life(replica, info)

    def come_to_life(self, replica: Replica, info: classes.ClassInfo) -> None:
        """Make the object of a replica that is held since it had no class, and go on with it."""
        if replica.number in self.lost:
            return
        pending, replica.pending = replica.pending, None
        replica.unmark(UNDECLARED)
        if isinstance(pending, list):
            if replica.object is None:
                self.attach(replica, info.blank(), info)
            try:
                set_plain_state(replica, decode_pieces(self.runtime.codec, pending, replica.name))
            except Exception as error:  # noqa: BLE001 - whatever it is, the object has no state here
                self.runtime.diverged(f"the state of {replica.name!r}", None, error)
            go_on(replica)
        else:
            *place, creator, ticket = pending
            self.make(replica, info, tuple(place), creator, ticket, None)

    def give_up(self, replica: Replica) -> None:
        """Too much waits for the class of an object: this process never uses it."""
        tasks = replica.empty_queue()
        why = self.lost[replica.number] = (
            f"{len(tasks)} calls of {replica.name!r} came before {replica.class_name} was declared "
            "here, more than are kept: import its module before joining"
        )
        _log.error("%s", why)
        for task in tasks:
            never(task, NotSerializable(why))

    # Resilience.

    def _count_degrees(self) -> None:
        """R may have changed: the smallest degree above 0 of whatever can be written (H2)."""
        if self.runtime.single:
            return
        replicas = (self.runtime.replicas[number] for number in self.names.values())
        least = least_of((self.runtime.group_degree, *(replica.least for replica in replicas)))
        least |= AVAILABLE if self.runtime.available else 0
        if least != self.least:
            self.least = least
            self.runtime.set_least(least)

    def degree_of_change(self, least: int) -> int:
        """The degree with which an object with these operations comes or goes.

        All hold it where R may change with it; whether it does is known only at its place in the
        order. -1 stands for the group's degree, which covers the object where it is no larger.
        """
        covered = least == 0 or 1 <= self.runtime.group_degree <= least
        return -1 if covered else ALL

    def largest_degree(self) -> int:
        """The largest number of members that a degree in use asks for beside the caller."""
        infos = [replica.info for replica in self.runtime.replicas[1:] if replica is not None]
        found = [self.runtime.effective_degree]
        found += [op.degree for info in infos if info is not None for op in info.operations]
        return max((degree for degree in found if degree <= NUMBER_MAX), default=0)

    def _lower_degrees(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None
    ) -> None:
        """A program has said that what there is of members must be enough for every degree."""
        self.lower_degrees()
        if invocation is not None:
            invocation.set_result(None)

    def lower_degrees(self) -> None:
        """From here on a degree is MIN(r, members - 1), as `degree="available"` has it."""
        self.runtime.available = True
        self._count_degrees()

    def note_single(self, info: classes.ClassInfo | None) -> None:
        """Say once that a degree counts for nothing here, as no other process can hold a copy (H2)."""
        if self.runtime.single and not self._said_single and (info is None or info.least):
            self._said_single = True
            _log.warning(
                "%s asks for a resilience degree, which is 0 in a group of one that no process can join: "
                "give join() listen= or seeds=, or start the program with `orcalike run`",
                "the group" if info is None else info.name,
            )

    # What waits long.

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
        return [
            (UNSEEN if ticket in self._sought else ticket, name_of(invocation.operation))
            for ticket, invocation in self._own.items()
        ]

    def still_waits(self, source: int, ticket: int) -> bool:
        """Whether a call of a member waits for its guard, or at the barrier."""
        waits = (source, ticket) in self.runtime.waiting
        return waits or ticket in self.arrived.get(source, ())

    def why(self, invocation: Invocation[Any]) -> str | None:
        """What one of this member's finds and arrivals waits for; None for any other call."""
        ticket = invocation.ticket
        if self._own.get(ticket) is not invocation:
            return None
        if ticket in self._sought:
            return "no member has shared an object of that name"
        members = [m for m in self.runtime.view.replicas if m.incarnation in self.expected]
        late = [str(member) for member in members if member.incarnation not in self.arrived]
        return f"{' and '.join(late)} did not come to the barrier yet"

    # Withdrawal.

    def send_withdrawal(self, ticket: int) -> None:
        """Ask, in the order, that this member's invocation `ticket` shall not run any more."""
        self.runtime.post(Code.WITHDRAW, (ticket,), "withdrawal")

    def _withdraw(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, withdrawn: int
    ) -> None:
        call = self._call_of(member.incarnation, withdrawn)
        if call is not None:
            withdrawal = Withdrawal(self.runtime, member.incarnation, withdrawn)
            withdrawal.at(*self.runtime.place_of()).submit_for(call.replicas)
        arrivals = self.arrived.get(member.incarnation, [])
        if withdrawn in arrivals:
            arrivals.remove(withdrawn)
            if not arrivals:
                del self.arrived[member.incarnation]
        waiting = self._own.pop(withdrawn, None) if self._is_me(member) else None
        if waiting is not None:
            waiting.set_error(withdrawal_error(waiting))

    def _call_of(self, source: int, ticket: int) -> Call | None:
        """An invocation that waits for its guard, or is in a lock queue still."""
        call: Call | None = self.runtime.waiting.get((source, ticket))
        if call is None:
            for replica in self.runtime.replicas:
                for task in replica.queued() if replica is not None else ():
                    if isinstance(task, Call) and (task.source, task.ticket) == (source, ticket):
                        return task
        return call

    def _is_me(self, member: Member) -> bool:
        return bool(member.incarnation == self.runtime.incarnation)

    # The whole group.

    def _fence(self, member: Member, ticket: int, invocation: Invocation[Any] | None) -> None:
        if self._is_me(member) and self.runtime.receipts is not None:
            self.runtime.receipts.marked(ticket)
        if invocation is None:
            return
        busy = [
            replica
            for replica in self.runtime.replicas
            if replica is not None
            and replica.has(LOCKED | QUEUED)
            and not replica.has(UNDECLARED | DROPPED)
        ]
        Fence(invocation).at(*self.runtime.place_of()).submit_for(busy)

    def _barrier(self, member: Member, ticket: int, invocation: Invocation[Any] | None) -> None:
        if self.runtime.view.place(member.incarnation) < 0:
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
            self._own[ticket] = invocation
        self._open_barrier()

    def _open_barrier(self) -> None:
        if not self.arrived or not self.expected <= self.arrived.keys():
            return
        self.arrived, self.expected = {}, set()
        for ticket in [ticket for ticket in self._own if ticket not in self._sought]:
            self._own.pop(ticket).set_result(None)

    def _end(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, *ranks: int
    ) -> None:
        self.ended.update(ranks)
        self.runtime.events.ended(self.ended)

    # Atomic functions.

    def invoke_atomic(
        self, atomic: Any, args: Sequence[object], named: dict[str, object], wanted: int
    ) -> Invocation[Any]:
        """Invoke an atomic function; returns the invocation."""
        info = atomic.info
        what = (info.name, info.digest, len(args), *args, *([named] if named else []))
        degree = self._degree_of_atomic(atomic, self.objects_among((*args, *named.values())))
        invocation: Invocation[Any] = self.runtime.invoke_group(
            Code.ATOMIC, what, atomic.name, wanted, degree
        )
        return invocation

    def _degree_of_atomic(self, atomic: Any, replicas: Iterable[Replica]) -> int:
        """The largest of its own and of its objects' classes'."""
        group = self.runtime.group_degree
        degrees = [replica.info.degree for replica in replicas if replica.info is not None]
        if atomic.degree >= 0 or not degrees:
            degrees.append(atomic.degree)
        known = [group if degree < 0 else degree for degree in degrees]
        return largest_of(known, len(self.runtime.view.members))

    def _atomic(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        name: str,
        digest: bytes,
        count: int,
        *values: Any,
    ) -> None:
        args = values[:count]
        named = values[count] if len(values) > count else {}
        info = classes.lookup_atomic(name)
        if info is None or info.digest != digest:
            raise ReplicaDivergence(
                f"atomic {name} is not declared here, or in another version: declare it in a "
                "module that all members import before they join"
            )
        call = Call(self.runtime, info.atomic, 0, None, tuple(args), named)
        call.of(member, ticket, invocation).at(*self.runtime.place_of())
        call.sized(self._size)
        call.departed = self.runtime.view.place(member.incarnation) < 0
        replicas = self.objects_among((*args, *named.values()))
        for replica in replicas:
            self.runtime.note_ran(replica, Ran.ATOMIC)
        self.runtime.submit_last(call.bind(replicas), replicas)

    def objects_among(self, values: Iterable[object]) -> list[Replica]:
        """The replicas of the shared objects among some arguments, each once."""
        found = [self.runtime.replica_of(value) for value in values]
        return [replica for replica in dict.fromkeys(found) if replica is not None]

    # The change of view.

    def view_changed(self, before: View | None, view: View) -> None:
        """What happens at a view's place in the order (A09)."""
        self._count_degrees()
        if before is not None:
            left = [m for m in before.replicas if view.place(m.incarnation) < 0]
            joined = [m for m in view.replicas if before.place(m.incarnation) < 0]
            gone = {member.incarnation for member in left}
            self.expected -= gone
            self.arrived = {who: t for who, t in self.arrived.items() if who not in gone}
            self._change_view(left, joined, view.number)
            self._open_barrier()

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
        own, self._own, self._sought = self._own, {}, {}
        for invocation in own.values():
            invocation.set_error(error)
        for replica in self.runtime.replicas:
            if replica is not None:
                replica.fail_reads(error)

    # State.

    def forget(self) -> None:
        """This member joins anew, or its state comes anew: nothing that was known holds any more."""
        self.ended_objects, self.ended_classes = array("H"), {}
        self._remains.clear()
        self.names, self.ended, self.expected, self.arrived = {}, set(), set(), {}
        self.least = 0
        self.lost = {}
        self.unmade = {}
        self.refused = {}
        self._own, self._sought = {}, {}

    def snapshot(self) -> tuple[object, ...]:
        """What belongs to no object."""
        stamp = self.runtime.place_of()[2]
        degree = self.runtime.group_degree
        available = self.runtime.available
        return (
            *(list(self.ended), list(self.expected), self.arrived, stamp, degree),
            *(available, self.seed),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Make it what `snapshot` gave; the names come with the objects."""
        ended, expected, self.arrived, self.stamp, degree, available, self.seed = state
        self.runtime.available = available
        self.runtime.group_degree = degree
        self.ended, self.expected = set(ended), set(expected)
        if self.ended:
            self.runtime.events.ended(self.ended)


def _digest(arguments: bytes) -> bytes:
    """What is kept of the arguments of a creation: whether others are the same."""
    return blake2b(arguments, digest_size=16).digest()
