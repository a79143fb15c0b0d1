"""The state of a group, taken by a joiner: what `giving` gave, part by part, as it comes.

Nothing runs until all is there. States are decoded as they come; that of an object whose class is not
declared here is kept as it came. Whatever is wrong with a part is raised: a member that lacks anything
has no state at all.
"""

from __future__ import annotations

import logging
import struct
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.runtime import classes
from orcalike.runtime.atomic_calls import replicas_among
from orcalike.runtime.call import Call
from orcalike.runtime.changes import unpack_change
from orcalike.runtime.digests import Digests
from orcalike.runtime.errors import ReplicaDivergence, Unreadable
from orcalike.runtime.manager import Manager
from orcalike.runtime.object_table import ObjectTable
from orcalike.runtime.replica import DROPPED, UNDECLARED, Replica
from orcalike.runtime.sender import Sender
from orcalike.runtime.state import what
from orcalike.runtime.state_hooks import take_state
from orcalike.runtime.state_parts import (
    DONE,
    END,
    ENDED,
    HEAD,
    MORE,
    OBJECT,
    PART,
    STATE,
    TABLE,
    TASK,
)
from orcalike.runtime.stream_decoder import Decoder
from orcalike.runtime.task import OVER, Task, go_on
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.wording import repr_of

if TYPE_CHECKING:
    from orcalike.runtime.changes import Changing

_log = logging.getLogger("orcalike")

NUMBERS_MAX = 1 << 28
"""Objects that a group may have had."""


if TYPE_CHECKING:

    class Taking(Changing, Protocol):
        """The runtime, as far as taking a state takes it."""

        chain: bytes | None
        dispatched: int

        @property
        def sender(self) -> Sender:
            """With the codec; it carries out the calls of the objects."""

        @property
        def manager(self) -> Manager:
            """For what belongs to no object."""

        @property
        def table(self) -> ObjectTable:
            """For the names, and what was ended."""

        @property
        def digests(self) -> Digests | None:
            """None if states are not compared."""

        @property
        def replicas(self) -> list[Replica | None]:
            """By number; it is filled here."""


class _Renewal(Task):
    """Gives an object that is in use here the group's state, when nothing runs in it any more."""

    def __init__(self, give: Callable[[], None]) -> None:
        self.give = give

    def run(self) -> int:
        self.give()
        return OVER


class _Coming:
    """What has come of one object."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.decoder: Decoder | None = None
        self.pieces: list[bytes] = []
        """Of its state, where its class is not declared here."""
        self.pending: tuple[Any, ...] | None = None
        self.state: Any = None
        self.has_state = False
        self.tasks: list[list[Any]] = []
        self.done = False


class Taker:
    """Takes the state of one runtime."""

    def __init__(self, runtime: Taking) -> None:
        self.runtime = runtime
        self._kept: list[tuple[Replica, Any]] = []
        """Of objects that the program has since before it joined again, until the state names them."""
        self._used: list[tuple[Replica, Any]] = []
        """Those of them that it has named."""
        self._parts: dict[tuple[int, int], bytearray] = {}
        self._coming: dict[int, _Coming] = {}
        self._has_head = self._over = False
        self._size = 0

    def keep_objects(self, objects: list[Any]) -> None:
        """The member joins again: the state to come is for these objects, where it has them."""
        self._clear()
        self._kept += self._used
        self._used = []
        for each in objects:
            replica, shared = each if isinstance(each, tuple) else (each, None)
            if shared is None and replica is not None:
                shared = replica.object
            if shared is not None:
                self._kept.append((replica, shared))

    def lose_kept(self) -> None:
        """The group does not have these objects: they are as those that were dropped."""
        kept, self._kept = self._kept, []
        lost = [replica for replica, _ in kept if not replica.has(DROPPED)]
        for replica in lost:
            replica.lose()
        if lost:
            _log.warning(
                "the group that this process has joined again does not have %s: calls there raise ObjectDropped",
                ", ".join(repr(replica.name) for replica in lost),
            )

    def _clear(self) -> None:
        self._parts.clear()
        self._coming.clear()
        self._has_head = self._over = False

    def begin(self) -> None:
        """State is about to come: forget what came from another donor."""
        runtime = self.runtime
        used = {replica for replica, _ in self._used}
        for replica in runtime.replicas:
            if replica is not None and replica not in used and replica.object is not None:
                replica.detach()
        self._clear()
        self._kept, self._used = [*self._kept, *self._used], []
        runtime.replicas[:] = [None]
        runtime.waiting.clear()
        runtime.manager.forget()

    def take(self, piece: bytes) -> None:
        """One piece. Raises ProtocolError and ReplicaDivergence: the state cannot be taken here."""
        at = 0
        while at < len(piece):
            if self._over or len(piece) - at < PART.size:
                raise ProtocolError("a piece of state that is malformed")
            kind, number, size = PART.unpack_from(piece, at)
            at += PART.size
            data = piece[at : at + size]
            if len(data) != size:
                raise ProtocolError("a piece of state that is cut short")
            at += size
            try:
                self._take_part(kind, number, data)
            except (OrcalikeError, MemoryError, RecursionError):
                raise
            except Exception as error:
                raise ProtocolError(
                    f"a part of the state that cannot be: {repr_of(error)}"
                ) from error

    def _take_part(self, kind: int, number: int, data: bytes) -> None:
        if kind & ~MORE == STATE:
            self._take_state(number, data)
            return
        key = kind & ~MORE, number
        if kind & MORE:
            self._parts.setdefault(key, bytearray()).extend(data)
            return
        if key in self._parts:
            data = bytes(self._parts.pop(key) + data)
        if kind == TASK:
            self._coming_at(number).tasks.append(self._unpack_task(data))
        elif kind == DONE:
            self._done(self._coming_at(number))
        else:
            self._take_whole(kind, number, self.runtime.sender.codec.decode(data))

    def _take_whole(self, kind: int, number: int, values: list[Any]) -> None:
        (value,) = values
        if kind == HEAD and not self._has_head:
            self._has_head = True
            self._take_head(*value)
        elif kind == ENDED:
            self._take_ended(*value)
        elif kind == TABLE:
            for entry in value:
                self._take_entry(*entry)
        elif kind == OBJECT:
            coming = self._coming_at(number)
            coming.replica.arguments, coming.pending = value
        elif kind == END:
            self._over = self._has_head and value == len(self._coming)
            self._over &= all(coming.done for coming in self._coming.values())
        else:
            raise ProtocolError(f"a part of state of unknown kind {kind}")

    def takes(self, number: int) -> bool:
        """Whether the object of that number is still to come."""
        return number in self._coming

    # The table.

    def _take_head(
        self, history: tuple[int, bytes | None], size: int, manager: tuple[Any, ...]
    ) -> None:
        runtime = self.runtime
        runtime.dispatched, chain = history
        if runtime.chain is not None and chain is not None:
            runtime.chain = chain
        if not 0 < size < NUMBERS_MAX:
            raise ProtocolError(f"a table of {size} objects")
        self._size = size
        runtime.manager.restore(manager)

    def _take_ended(self, named: list[tuple[str, bytes]], runs: bytes) -> None:
        table = self.runtime.table
        table.ended_classes = {(name, digest): at for at, (name, digest) in enumerate(named, 1)}
        table.ended_objects = array("H")
        for kind, count in struct.iter_unpack(">HI", runs):
            if kind > len(named) or len(table.ended_objects) + count > self._size:
                raise ProtocolError("objects that were ended, and cannot have been")
            table.ended_objects.extend(array("H", [kind]) * count)

    def _take_entry(self, number: int, name: str, *entry: Any) -> None:
        *fields, named = entry
        runtime = self.runtime
        if not 0 < number < self._size or number in self._coming:
            raise ProtocolError(f"object {number} of {self._size}")
        if number >= len(runtime.replicas):
            runtime.replicas.extend([None] * (number + 1 - len(runtime.replicas)))
        replica = self._kept_as(number, name, *fields) or self._made(number, name, *fields)
        runtime.replicas[number] = replica
        if named:
            runtime.table.names[name] = number
        self._coming[number] = _Coming(replica)

    def _made(
        self, number: int, name: str, class_name: str, digest: bytes, made_with: bytes, least: int
    ) -> Replica:
        runtime = self.runtime
        replica = Replica(runtime.sender, number, name, class_name, digest, None, made_with, least)
        replica.hold(0)  # until all is there
        info = runtime.table.lookup(class_name)
        if info is None or info.digest != digest:
            replica.hold(UNDECLARED)
        else:  # before any state, since states refer to objects
            runtime.table.attach(replica, info.blank(), info)
        return replica

    def _kept_as(
        self, number: int, name: str, class_name: str, digest: bytes, made_with: bytes, least: int
    ) -> Replica | None:
        """The replica of that object from before this member joined again.

        Its number may be another one, where this member saw things that the group never did.
        """
        same = [
            each
            for each in self._kept
            if (each[0].name, each[0].class_name, each[0].digest) == (name, class_name, digest)
            and (each[0].number == number or not each[0].has(DROPPED))
        ]
        same.sort(key=lambda each: each[0].number == number)
        if not same:
            return None
        replica, shared = same[-1]
        self._kept.remove(same[-1])
        self._used.append(same[-1])
        replica.renew(number, made_with, least, shared)
        return replica

    # Objects.

    def _coming_at(self, number: int) -> _Coming:
        coming = self._coming.get(number)
        if coming is None or coming.done:
            raise ProtocolError(f"a part of object {number}, of which none is due")
        return coming

    def _take_state(self, number: int, data: bytes) -> None:
        coming = self._coming_at(number)
        coming.has_state = True
        if coming.replica.has(UNDECLARED):
            coming.pieces.append(data)
            return
        if coming.decoder is None:
            coming.decoder = Decoder(self.runtime.sender.codec, what(coming.replica.name))
        coming.decoder.feed(data)

    def _done(self, coming: _Coming) -> None:
        """All of an object has come; what it waits for, or its state."""
        coming.done = True
        if not coming.has_state:
            if coming.pending is None:
                raise ProtocolError(f"{coming.replica.name!r} came without a state")
        elif coming.decoder is not None:
            coming.state = coming.decoder.result()
            coming.decoder = None
            if not coming.replica.in_use:
                self._set_state(coming)

    def _set_state(self, coming: _Coming) -> None:
        state, coming.state = coming.state, None
        try:
            take_state(self.runtime.budget, self.runtime.sender.driver, coming.replica, state)
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            raise ReplicaDivergence(
                f"{what(coming.replica.name)}: restore raised {repr_of(error)}"
            ) from error

    def _unpack_task(self, data: bytes) -> list[Any]:
        """(does it wait for its guard, its place, its kind, further fields)."""
        (size,) = struct.unpack_from(">I", data)
        (fields,) = self.runtime.sender.codec.decode(data[4 : 4 + size])
        wait, place, kind, *rest, _last = fields
        if kind in ("call", "atomic"):
            return [wait, place, kind, *rest, data[4 + size :]]
        return [wait, place, kind, *rest]

    # The end.

    def end(self) -> None:
        """That was all. Raises ProtocolError if it was not: then nothing has run."""
        if not self._over:
            raise ProtocolError("state that is not whole")
        coming, self._coming = self._coming, {}
        self._used.clear()
        self.lose_kept()
        runtime = self.runtime
        runtime.replicas.extend([None] * (self._size - len(runtime.replicas)))
        for number in sorted(coming):
            self._enliven(coming[number])
        if runtime.digests is not None:
            runtime.digests.begin()

    def _enliven(self, coming: _Coming) -> None:
        replica, table = coming.replica, self.runtime.table
        if replica.in_use and coming.has_state and not replica.has(UNDECLARED):
            _Renewal(lambda: self._renew(coming)).submit_for([replica])
            return
        replica.renewed()
        if replica.has(UNDECLARED):
            replica.pending = coming.pieces if coming.has_state else coming.pending
            self._take_tasks(coming)
            info = table.lookup(replica.class_name)
            if info is not None and info.digest == replica.digest:  # it was declared meanwhile
                table.come_to_life(replica, info)
        elif coming.has_state:
            self._take_tasks(coming)
            go_on(replica)
        else:  # its class was declared nowhere but here
            replica.hold(0)
            replica.pending = coming.pending
            self._take_tasks(coming)
            info = table.lookup(replica.class_name)
            assert info is not None
            table.come_to_life(replica, info)

    def _renew(self, coming: _Coming) -> None:
        self._set_state(coming)
        coming.replica.renewed()
        self._take_tasks(coming)

    def _take_tasks(self, coming: _Coming) -> None:
        for wait, place, kind, *fields in coming.tasks:
            self._take_task(coming.replica, place, kind, fields, wait=wait)

    def _take_task(
        self, replica: Replica, place: tuple[int, int, int], kind: str, fields: Any, *, wait: bool
    ) -> None:
        """A task of an object: it waits for its guard, or is in the lock queue."""
        runtime = self.runtime
        if kind not in ("call", "atomic"):
            unpack_change(runtime, kind, *fields).at(*place).submit_for([replica])
            return
        sender, ticket, departed, size, *what = fields
        call = runtime.waiting.get((sender.incarnation, ticket))
        if call is None:
            call = self._atomic(*what) if kind == "atomic" else Call(runtime, None, *what)
            call.of(sender, ticket, None).at(*place)
            call.departed = departed
            call.sized(size)
        if not wait:
            call.submit_for([replica])
            return
        if kind == "call":
            call.bind([replica])
        call.wait_at(replica)
        runtime.waiting[sender.incarnation, ticket] = call

    def _atomic(self, name: str, digest: bytes, raw: bytes) -> Call:
        info = classes.lookup_atomic(name)
        if info is None or info.digest != digest:
            raise ReplicaDivergence(f"atomic {name} waits, and is not declared here as it is there")
        try:
            *args, named = self.runtime.sender.codec.decode(raw)
        except Unreadable as error:
            raise error.of(f"atomic {name}") from None
        call = Call(self.runtime, info.atomic, 0, None, tuple(args), named)
        return call.bind(replicas_among(tuple(args), named))
