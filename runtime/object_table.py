"""The objects of one group, by name and number: made, found, ended, and brought to life.

What changes the table (`create`, `find`, `drop`) are operations of the group itself (`manager`), at
their places in the order, so names and numbers are the same at each member. An object that was ended
leaves its number behind, since references to it may still travel.
"""

from __future__ import annotations

import logging
from array import array
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.runtime import classes
from orcalike.runtime.audit import why_not
from orcalike.runtime.call import Call
from orcalike.runtime.changes import Drop, Hook
from orcalike.runtime.codes import Code
from orcalike.runtime.degrees import Degrees
from orcalike.runtime.digests import Digests
from orcalike.runtime.divergence import diverged
from orcalike.runtime.errors import (
    ClassMismatch,
    NotSerializable,
    ObjectDropped,
    TooManyWaiting,
    Unreadable,
)
from orcalike.runtime.invariants import check_invariants
from orcalike.runtime.invocation import Invocation
from orcalike.runtime.raising import fresh
from orcalike.runtime.remains import Remains
from orcalike.runtime.replica import (
    DROPPED,
    RAN_MADE,
    RECORDED,
    STRICT,
    UNDECLARED,
    Replica,
    replica_of,
)
from orcalike.runtime.sender import Sender
from orcalike.runtime.state import decode_pieces
from orcalike.runtime.state_hooks import take_state
from orcalike.runtime.strict import guard_attributes
from orcalike.runtime.task import empty_queue, go_on, never
from orcalike.transport.degree import ALL
from orcalike.transport.errors import ProtocolError
from orcalike.transport.view import Member
from orcalike.transport.wire.digest import blake2b
from orcalike.transport.wording import counted, repr_of

if TYPE_CHECKING:
    from orcalike.runtime.changes import Changing

FINDS_MAX = 65_536
"""Finds of this member that may wait for their objects."""

ENDED_CLASSES_MAX = 65_535
"""Classes of ended objects that are remembered: more than a program has, unless a member invents names."""

_log = logging.getLogger("orcalike")


if TYPE_CHECKING:

    class Taking(Protocol):
        """What takes the state as a joiner, as far as the table takes it."""

        def takes(self, number: int) -> bool:
            """Whether the object of that number is still to come."""

    class Sharing(Changing, Protocol):
        """The runtime, as far as the object table takes it."""

        @property
        def sender(self) -> Sender:
            """It carries out the calls of the objects."""

        @property
        def degrees(self) -> Degrees:
            """Which change with the objects."""

        @property
        def digests(self) -> Digests | None:
            """None if states are not compared."""

        @property
        def taker(self) -> Taking:
            """For what is not here yet."""

        @property
        def replicas(self) -> list[Replica | None]:
            """By number; it grows here."""

        def note_ran(self, replica: Replica, bit: int) -> None:
            """What is no operation changes an object."""


class ObjectTable:
    """The object table of one group, as this member has it."""

    def __init__(self, runtime: Sharing, *, strict: bool = False) -> None:
        self._runtime = runtime
        self._strict = strict
        self._warned_of_seeds = False
        self.names: dict[str, int] = {}
        self.ended_objects = array("H")
        """By number: 1 + the place in `ended_classes` of its class, or 0 where it was not ended."""
        self.ended_classes: dict[tuple[str, bytes], int] = {}
        self._remains = Remains()
        self.refused: dict[int, str] = {}
        """The objects that were made with a state that cannot travel, by number, and why."""
        self.unmade: dict[int, Exception] = {}
        """The objects whose `__init__` has raised, by number, until they are dropped in the order: a
        member without the class does not know, and must free name and number at the same place."""
        self.lost: dict[int, str] = {}
        """The objects that this process can never use, by number, and why."""
        self.finds: dict[int, tuple[Invocation[Any], str, str, bytes]] = {}
        """This member's own finds that wait, by ticket, with the name, the class and its digest."""
        self.lookup = classes.lookup
        """Finds what is declared; a simulated member may know less than its process."""

    def forget(self) -> None:
        """This member joins anew, or its state comes anew: nothing that was known holds any more."""
        self.ended_objects, self.ended_classes = array("H"), {}
        self._remains.clear()
        self.names, self.finds = {}, {}
        self.lost, self.unmade, self.refused = {}, {}, {}

    def named(self) -> list[Replica]:
        """The objects that have a name."""
        return [self._at(number) for number in self.names.values()]

    def _at(self, number: int) -> Replica:
        """The object of that number, which has not ended."""
        replica = self._runtime.replicas[number]
        assert replica is not None
        return replica

    def create(
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
        """Make an object of that name, or give the one that there is (`share`)."""
        if not 0 <= least <= ALL:
            raise ProtocolError(f"{least} is no degree")
        self._compare_seeds(member, class_name, hashed)
        number = self.names.get(name)
        if number is not None:
            self._bind(number, invocation, class_name, digest, arguments)
            return
        replica = Replica(
            self._runtime.sender,
            len(self._runtime.replicas),
            name,
            class_name,
            digest,
            arguments,
            _digest(arguments),
            least,
        )
        self._runtime.replicas.append(replica)
        self._runtime.note_ran(replica, RAN_MADE)
        self.names[name] = replica.number
        self._runtime.degrees.count()
        info = self.lookup(class_name)
        if info is None or info.digest != digest:
            replica.hold(UNDECLARED)
            replica.pending = (*self._runtime.place_of(), member, ticket)
            return
        self.make(replica, info, self._runtime.place_of(), member, ticket, invocation)

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
                    *args, named = self._runtime.sender.codec.decode(replica.arguments)
                except Unreadable as error:
                    raise error.of(f"{info.cls.__name__}.__init__", replica.name) from None
                if self._runtime.shadow is None:
                    shared.__init__(*args, **named)
                else:
                    self._runtime.shadow.make(replica, shared, info)
                check_invariants(shared, info, replica.name, f"{info.cls.__name__}.__init__")
            except Exception as error:
                failed.append(error)
                raise
            why = why_not(self._runtime.sender.codec, replica)
            if why is not None:  # at its caller; all see it, and it is dropped in the order
                self.refused[replica.number] = f"{why}; so it cannot be shared"
                raise NotSerializable(self.refused[replica.number])
            return shared

        replica.hold(0)
        if replica.object is None:
            self.attach(replica, shared, info)
        call = Call(self._runtime, Hook(init, f"{info.cls.__name__}.__init__"), 0, None)
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
        if creator.incarnation == self._runtime.incarnation and (
            failed or replica.number in self.refused
        ):
            self._end_in_order(replica)

    def attach(self, replica: Replica, shared: object, info: classes.ClassInfo) -> None:
        """Give a replica its object."""
        replica.attach(shared, info)
        if self._strict:
            replica.mark(STRICT)
            guard_attributes(info.cls)
        if self._runtime.sender.history is not None or self._runtime.shadow is not None:
            replica.mark(RECORDED)

    def _found(self, replica: Replica) -> None:
        for ticket, (invocation, name, class_name, digest) in list(self.finds.items()):
            if name == replica.name:
                del self.finds[ticket]
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
        replica = self._at(number)
        self._give(replica, invocation, class_name, digest)
        if invocation.exception() is None and replica.arguments_digest != _digest(arguments):
            _log.warning(
                "%r exists already, made with other arguments; those given here, as in %.1000s, are not used",
                replica.name,
                _as_call(class_name, self._runtime.sender.codec.decode(arguments)),
            )

    def _end_in_order(self, replica: Replica) -> None:
        """Drop an object that could not be made; a fault of this process alone is no reason to."""
        if self._runtime.sender.failure is None:
            degree = self._runtime.degrees.of_change(replica.least)
            self._runtime.sender.post(Code.DROP, (replica.number,), "drop", degree)

    def find(
        self,
        member: Member,
        ticket: int,
        invocation: Invocation[Any] | None,
        name: str,
        class_name: str,
        digest: bytes,
    ) -> None:
        """Give the object of that name; the caller waits until there is one."""
        if invocation is None:
            return
        number = self.names.get(name)
        if number is None or number in self.unmade:
            if len(self.finds) >= FINDS_MAX:
                raise TooManyWaiting(f"{FINDS_MAX} finds wait for their objects already")
            self.finds[ticket] = (invocation, name, class_name, digest)
        else:
            self._give(self._at(number), invocation, class_name, digest)

    def drop(
        self, member: Member, ticket: int, invocation: Invocation[Any] | None, number: int
    ) -> None:
        """End an object: its name is free from here on."""
        if not 0 < number < len(self._runtime.replicas) or self._runtime.replicas[number] is None:
            raise ObjectDropped("the object was ended already")
        replica = self._at(number)
        if self.names.get(replica.name) == number:
            del self.names[replica.name]  # at once: it is free from this place in the order on
            self._runtime.degrees.count()
        if self._runtime.digests is not None:
            self._runtime.digests.ended(replica)
        drop = Drop(self._runtime).at(*self._runtime.place_of())
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
        self._runtime.replicas[number] = None
        if named not in self.ended_classes and len(self.ended_classes) < ENDED_CLASSES_MAX:
            self.ended_classes[named] = len(self.ended_classes) + 1
        if named in self.ended_classes:
            self.ended_objects.extend([0] * (number + 1 - len(self.ended_objects)))
            self.ended_objects[number] = self.ended_classes[named]
        shared = replica.object
        if shared is not None:
            self._remains.add(replica, shared)

    def remains(self) -> list[tuple[Replica, object]]:
        """The objects that were ended and that the program still has."""
        found = ((replica_of(shared), shared) for shared in self._remains.all())
        return [(replica, shared) for replica, shared in found if replica is not None]

    def ended_object(self, number: int) -> object:
        """What a reference to an object that was ended refers to; None if it was never made."""
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
            self._runtime.sender, number, f"object {number}", class_name, digest, None, b"", 0
        )
        shared = info.blank()
        self.attach(replica, shared, info)
        replica.mark(DROPPED)
        self._remains.add(replica, shared)
        return shared

    def declared(self, info: classes.ClassInfo | classes.AtomicInfo) -> None:
        """A class is declared in this process: objects of it that waited come to life."""
        for replica in self._runtime.replicas:
            if (
                isinstance(info, classes.ClassInfo)
                and replica is not None
                and replica.has(UNDECLARED)
                and (replica.class_name, replica.digest) == (info.name, info.digest)
                and not self._runtime.taker.takes(replica.number)
            ):
                runtime = self._runtime
                runtime.budget.run_aside(runtime.sender.driver, self.come_to_life, replica, info)

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
                state = decode_pieces(self._runtime.sender.codec, pending, replica.name)
                take_state(self._runtime.budget, self._runtime.sender.driver, replica, state)
            except Exception as error:  # noqa: BLE001 - whatever it is, the object has no state here
                diverged(self._runtime, f"the state of {replica.name!r}", None, error)
            go_on(replica)
        else:
            *place, creator, ticket = pending
            self.make(replica, info, tuple(place), creator, ticket, None)

    def give_up(self, replica: Replica) -> None:
        """Too much waits for the class of an object: this process never uses it."""
        tasks = empty_queue(replica)
        why = self.lost[replica.number] = (
            f"{counted(len(tasks), 'call')} of {replica.name!r} came before {replica.class_name} was declared "
            "here, more than are kept: import its module before joining"
        )
        _log.error("%s", why)
        for task in tasks:
            never(task, NotSerializable(why))


def _as_call(class_name: str, arguments: list[Any]) -> str:
    """How a program calls the class: with the positional arguments, and those in the last of all."""
    *placed, named = arguments
    given = [repr_of(value) for value in placed] + [f"{key}={repr_of(named[key])}" for key in named]
    return f"{class_name.rpartition(':')[2]}({', '.join(given)})"


def _digest(arguments: bytes) -> bytes:
    """What is kept of the arguments of a creation: whether others are the same."""
    return blake2b(arguments, digest_size=16).digest()
