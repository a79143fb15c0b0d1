"""The state of a group, given to joiners and taken by them (A44, F19; DESIGN, State transfer).

A snapshot is the state at one place, the view. Objects are packed one by one, as the joiner takes
them; a write that is about to touch an object that is not packed yet packs it first; an object with
a queue from before the view is packed when that has run. A piece is a byte that says whether the
record ends here, and a part of the record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from orcalike.runtime import classes
from orcalike.runtime.changes import Change, unpack_change
from orcalike.runtime.errors import NotSerializable, ReplicaDivergence
from orcalike.runtime.operation import Atomic
from orcalike.runtime.replica import Replica
from orcalike.runtime.task import Call, Task

OVER = 0
LOCKED, QUEUED, UNPACKED, DROPPED, UNDECLARED = 1, 2, 16, 32, 64

_log = logging.getLogger("orcalike")

PIECE_MAX = 262_144
"""Bytes of a piece: some hundred microseconds of somebody else's time."""


class _Packing(Task):
    """Packs an object in its turn, after what was queued before the view."""

    def __init__(self, donor: Donor, replica: Replica, parts: dict[int, bytes]) -> None:
        self.donor, self.replica, self.parts = donor, replica, parts

    def run(self) -> int:
        self.donor.pack_for(self.parts, self.replica)
        return OVER


class _Renewal(Task):
    """Gives an object that is in use here the group's state, when nothing runs in it any more."""

    def __init__(self, give: Callable[[], None]) -> None:
        self.give = give

    def run(self) -> int:
        self.give()
        return OVER


class Donor:
    """Gives and takes the state of one runtime."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self._record = bytearray()
        self._kept: list[Replica] = []
        """Of objects that the program has since before it joined again, until the state names them."""

    def keep_objects(self, replicas: list[Replica | None]) -> None:
        """The member joins again: the state to come is for these objects, where it has them."""
        self._record.clear()
        self._kept += [each for each in replicas if each is not None and each.object is not None]

    # Giving.

    def give(self) -> Iterator[bytes]:
        """The pieces of the state as it stands now; b"" where the next one is not there yet."""
        parts: dict[int, bytes] = {}
        header = self._header()
        for replica in self._replicas():
            if replica.has(UNDECLARED | DROPPED):
                parts[replica.number] = self._packed(replica)
            elif replica.has(LOCKED | QUEUED):
                _Packing(self, replica, parts).submit_for([replica])
            else:
                replica.snapshots = [*(replica.snapshots or ()), parts]
                replica.mark(UNPACKED)
        return self._pieces(header, [replica.number for replica in self._replicas()], parts)

    def _replicas(self) -> list[Replica]:
        """All objects; those that were ended too, since others may refer to them still."""
        return [replica for replica in self.runtime.replicas if replica is not None]

    def _header(self) -> bytes:
        runtime = self.runtime
        objects = [
            (r.number, r.name, r.class_name, r.digest, r.arguments, r.least)
            for r in self._replicas()
        ]
        history = (runtime.dispatched, runtime.chain)
        header: bytes = runtime.codec.encode_value(
            (history, len(runtime.replicas), objects, runtime.manager.snapshot()),
            "the state of the group",
        )
        return header

    def _pieces(
        self, header: bytes, numbers: list[int], parts: dict[int, bytes]
    ) -> Iterator[bytes]:
        yield from _cut(header)
        for number in numbers:
            while number not in parts:
                replica = self.runtime.replicas[number]
                if replica.has(UNPACKED):
                    self.pack(replica)
                else:
                    yield b""
            yield from _cut(parts.pop(number))

    def pack(self, replica: Replica) -> None:
        """Pack an object that is not packed yet, before it changes or when its turn has come."""
        due, replica.snapshots = replica.snapshots or [], None
        replica.unmark(UNPACKED)
        record = self._packed(replica)
        for parts in due:
            parts[replica.number] = record
        self.runtime.more_state()

    def pack_for(self, parts: dict[int, bytes], replica: Replica) -> None:
        """Pack an object for one snapshot: what was queued before that has run."""
        parts[replica.number] = self._packed(replica)
        self.runtime.more_state()

    def _packed(self, replica: Replica) -> bytes:
        try:
            return self._record_of(replica)
        except NotSerializable as error:
            _log.error("%s, so joiners do not get %r", error, replica.name)
            return self._encode(replica, (None, str(error), False, []))

    def _record_of(self, replica: Replica) -> bytes:
        """(state, what it waits for without one, whether it was ended, its calls)."""
        if replica.has(DROPPED):
            return self._encode(replica, (None, None, True, []))
        if replica.has(UNDECLARED):
            queue = [self._task(task) for task in replica.queued()]
            return self._encode(replica, (None, replica.pending, False, queue))
        calls = [self._task(call) for call in replica.waits()]
        return self._encode(replica, (self.state_of(replica), None, False, calls))

    def _encode(self, replica: Replica, fields: tuple[object, ...]) -> bytes:
        what = f"the state of {replica.name!r}"
        record: bytes = self.runtime.codec.encode_value((replica.number, *fields), what)
        return record

    def _task(self, task: Task) -> tuple[object, ...]:
        """A task as it travels: its place, whose it is, and what it is."""
        place = (task.seqno, task.index, task.stamp)
        if isinstance(task, Change):
            return (place, *task.pack())
        assert isinstance(task, Call)
        encode, function = self.runtime.codec.encode, task.function
        whose = (task.source, task.ticket, task.departed)
        if isinstance(function, Atomic):
            info = function.info
            assert info is not None
            raw = encode((*task.args, task.named), function.name)
            return (place, "atomic", *whose, info.name, info.digest, raw)
        if task.raw is not None:
            return (place, "call", *whose, task.code, task.raw)
        named = (task.named,) if task.named else ()
        code = function.index << 1 | bool(named)
        raw = encode((*task.args, *named), function.title)
        return (place, "call", *whose, code, raw)

    def state_of(self, replica: Replica) -> bytes:
        """An object's state, encoded."""
        state = self.plain_state(replica)
        encoded: bytes = self.runtime.codec.encode_value(state, f"the state of {replica.name!r}")
        return encoded

    def plain_state(self, replica: Replica) -> object:
        """What the object's `snapshot` gives, or its attributes."""
        shared = replica.object
        assert replica.info is not None
        if "snapshot" in replica.info.hooks:
            return shared.snapshot()
        return _attributes(shared)

    def set_state(self, replica: Replica, encoded: bytes) -> None:
        """Make an object's state what `state_of` gave."""
        shared = replica.object
        (state,) = self.runtime.codec.decode(encoded)
        assert replica.info is not None
        if "restore" in replica.info.hooks:
            state = _attributes(type(shared).restore(state))
        for name in _attributes(shared):
            if name not in state:
                object.__delattr__(shared, name)
        for name, value in state.items():
            object.__setattr__(shared, name, value)

    # Taking.

    def take(self, piece: bytes) -> None:
        """One piece of the state of the group that this member joins."""
        self._record += piece[1:]
        if piece[0]:
            record, self._record = bytes(self._record), bytearray()
            (fields,) = self.runtime.codec.decode(record)
            try:
                if isinstance(fields[0], int):
                    self._take_object(*fields)
                else:
                    self._take_header(*fields)
            except ReplicaDivergence as error:
                self.runtime.diverged("the state of the group", error)

    def _take_header(
        self,
        history: tuple[int, bytes | None],
        size: int,
        objects: list[tuple[Any, ...]],
        manager: tuple[Any, ...],
    ) -> None:
        runtime = self.runtime
        runtime.dispatched, chain = history
        if runtime.chain is not None and chain is not None:
            runtime.chain = chain
        runtime.replicas.extend([None] * (size - len(runtime.replicas)))
        for number, *fields in objects:
            runtime.replicas[number] = self._kept_as(number, *fields) or self._made(number, *fields)
        for replica in self._kept:
            replica.mark(DROPPED)
        self._kept.clear()
        runtime.manager.restore(manager)

    def _made(self, number: int, *fields: Any) -> Replica:
        replica = Replica(self.runtime, number, *fields)
        info = self.runtime.manager.lookup(replica.class_name)
        if info is None or info.digest != replica.digest:
            replica.hold(UNDECLARED)
        else:  # before any state, since states refer to objects
            self.runtime.manager.attach(replica, info.blank(), info)
        return replica

    def _kept_as(
        self,
        number: int,
        name: str,
        class_name: str,
        digest: bytes,
        arguments: bytes,
        least: int,
    ) -> Replica | None:
        """The replica of that object from before this member joined again.

        Its number may be another one, where this member saw things that the group never did.
        """
        same = [
            each
            for each in self._kept
            if (each.name, each.class_name, each.digest) == (name, class_name, digest)
            and (each.number == number or not each.has(DROPPED))
        ]
        same.sort(key=lambda each: each.number == number)
        if not same:
            return None
        self._kept.remove(same[-1])
        same[-1].renew(number, arguments, least)
        return same[-1]

    def _take_object(
        self,
        number: int,
        state: bytes | None,
        pending: Any,
        dropped: bool,
        tasks: list[tuple[Any, ...]],
    ) -> None:
        manager = self.runtime.manager
        replica = self.runtime.replicas[number]
        if dropped:
            replica.mark(DROPPED)
            return
        if isinstance(pending, str):
            _log.error("%s: %r cannot be used here", pending, replica.name)
            replica.hold(UNDECLARED)
        if state is not None and pending is None and replica.in_use:
            _Renewal(lambda: self._renew(replica, state, tasks)).submit_for([replica])
            return
        replica.hold(0)  # until its state is there
        replica.pending = pending if state is None else state
        for place, kind, *fields in tasks:
            self._take_task(replica, place, kind, fields, wait=state is not None)
        if not replica.has(UNDECLARED):
            manager.come_to_life(replica, self.runtime.manager.lookup(replica.class_name))

    def _renew(self, replica: Replica, state: bytes, tasks: list[tuple[Any, ...]]) -> None:
        self.set_state(replica, state)
        for place, kind, *fields in tasks:
            self._take_task(replica, place, kind, fields, wait=True)

    def _take_task(
        self, replica: Replica, place: tuple[int, int, int], kind: str, fields: Any, *, wait: bool
    ) -> None:
        """A task of an object: it waits for its guard, or is in the lock queue."""
        runtime = self.runtime
        if kind not in ("call", "atomic"):
            unpack_change(runtime, kind, *fields).at(*place).submit_for([replica])
            return
        source, ticket, departed, *what = fields
        call = runtime.waiting.get((source, ticket))
        if call is None:
            call = self._atomic(*what) if kind == "atomic" else Call(runtime, None, *what)
            call.of(source, ticket, None).at(*place)
            call.departed = departed
        if not wait:
            call.submit_for([replica])
            return
        if kind == "call":
            call.bind([replica])
        replica.add_waiting(call)
        runtime.waiting[source, ticket] = call

    def _atomic(self, name: str, digest: bytes, raw: bytes) -> Call:
        info = classes.lookup_atomic(name)
        if info is None or info.digest != digest:
            raise ReplicaDivergence(f"atomic {name} waits, and is not declared here as it is there")
        *args, named = self.runtime.codec.decode(raw)
        call = Call(self.runtime, info.atomic, 0, None, tuple(args), named)
        return call.bind(self.runtime.manager.objects_among((*args, *named.values())))


def _attributes(shared: object) -> dict[str, object]:
    """The attributes of an object, those in slots too."""
    found = dict(getattr(shared, "__dict__", ()))
    if found and type(shared.__dict__) is dict:
        # Looked at, it shares its keys with those of other objects for good, and CPython 3.11 does
        # not specialise operations on such: twice as slow. With one of its own they stay fast.
        object.__setattr__(shared, "__dict__", dict(found))
    for cls in type(shared).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(shared, name):
                found[name] = getattr(shared, name)
    return found


def _cut(record: bytes) -> Iterator[bytes]:
    """The pieces of one record."""
    for begin in range(0, len(record), PIECE_MAX):
        last = begin + PIECE_MAX >= len(record)
        yield (b"\1" if last else b"\0") + record[begin : begin + PIECE_MAX]
