"""The state of a group, given to joiners and taken by them (A44, F19; DESIGN, State transfer).

A snapshot is the state at one place, the view. Objects are packed one by one, as the joiner takes
them; a write that is about to touch an object that is not packed yet packs it first; an object with
a queue from before the view is packed when that has run. A piece is a byte that says whether the
record ends here, and a part of the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orcalike.runtime import classes
from orcalike.runtime.replica import Replica
from orcalike.runtime.task import Call

LOCKED, QUEUED, UNPACKED, DROPPED, UNDECLARED = 1, 2, 16, 32, 64

PIECE_MAX = 262_144
"""Bytes of a piece: some hundred microseconds of somebody else's time."""


class _Packing:
    """Packs an object in its turn, after what was queued before the view."""

    undo = False
    guard = None
    title = "snapshot"

    def __init__(self, donor: Donor, replica: Replica) -> None:
        self.function = lambda: donor.pack(replica)


class Donor:
    """Gives and takes the state of one runtime."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime
        self._record = bytearray()
        self._atomics: dict[tuple[int, int], Call] = {}

    # Giving.

    def give(self) -> Iterator[bytes]:
        """The pieces of the state as it stands now; b"" where the next one is not there yet."""
        parts: dict[int, bytes] = {}
        header = self._header()
        for replica in self._replicas():
            if replica.snapshots is None:
                replica.snapshots = []
            replica.snapshots.append(parts)
            if replica.has(LOCKED | QUEUED) and not replica.has(UNDECLARED):
                call = Call(self.runtime, _Packing(self, replica), 0, None).of(0, 0, None)
                call.at(*self.runtime.place_of()).submit_for([replica])
            else:
                replica.mark(UNPACKED)
        return self._pieces(header, [replica.number for replica in self._replicas()], parts)

    def _replicas(self) -> list[Replica]:
        return [
            replica
            for replica in self.runtime.replicas
            if replica is not None and not replica.has(DROPPED)
        ]

    def _header(self) -> bytes:
        codec = self.runtime.codec
        atomics = {
            key: call for key, call in self.runtime.waiting.items() if len(call.replicas) != 1
        }
        objects = [
            (r.number, r.name, r.class_name, r.digest, r.arguments) for r in self._replicas()
        ]
        packed = [(*key, *self._atomic(call)) for key, call in atomics.items()]
        manager = self.runtime.manager.snapshot()
        history = (self.runtime.dispatched, self.runtime.chain)
        header: bytes = codec.encode_value(
            (history, len(self.runtime.replicas), objects, packed, manager),
            "the state of the group",
        )
        return header

    def _atomic(self, call: Call) -> tuple[object, ...]:
        info = call.function.info
        values = self.runtime.codec.encode((*call.args, call.named), call.function.name)
        return (info.name, values, call.seqno, call.index, call.stamp)

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
        """Pack an object for all snapshots that are due."""
        record = self._record_of(replica)
        due, replica.snapshots = replica.snapshots or [], None
        for parts in due:
            parts[replica.number] = record
        replica.unmark(UNPACKED)
        self.runtime.more_state()

    def _record_of(self, replica: Replica) -> bytes:
        what = f"the state of {replica.name!r}"
        state = None if replica.has(UNDECLARED) else self.state_of(replica)
        calls = replica.queued() if replica.has(UNDECLARED) else replica.waits()
        pending = replica.pending if replica.has(UNDECLARED) else None
        waiting = [self._call(call) for call in calls if isinstance(call, Call)]
        record: bytes = self.runtime.codec.encode_value(
            (replica.number, state, pending, waiting), what
        )
        return record

    def _call(self, call: Call) -> tuple[object, ...]:
        place = (call.source, call.ticket, call.seqno, call.index, call.stamp)
        if len(call.replicas) != 1:
            return (*place, 0, None)
        raw, code = call.raw, call.code
        if raw is None:
            named = (call.named,) if call.named else ()
            raw = self.runtime.codec.encode((*call.args, *named), call.function.title)
            code = call.function.index << 1 | bool(named)
        return (*place, code, raw)

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
        state = dict(getattr(shared, "__dict__", ()))
        for cls in type(shared).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(shared, name):
                    state[name] = getattr(shared, name)
        return state

    def set_state(self, replica: Replica, encoded: bytes) -> None:
        """Make an object's state what `state_of` gave."""
        shared = replica.object
        (state,) = self.runtime.codec.decode(encoded)
        assert replica.info is not None
        if "restore" in replica.info.hooks:
            state = vars(type(shared).restore(state))
        if hasattr(shared, "__dict__"):
            shared.__dict__.clear()
        for name, value in state.items():
            object.__setattr__(shared, name, value)

    # Taking.

    def take(self, piece: bytes) -> None:
        """One piece of the state of the group that this member joins."""
        self._record += piece[1:]
        if piece[0]:
            record, self._record = bytes(self._record), bytearray()
            (fields,) = self.runtime.codec.decode(record)
            if len(fields) == 5:
                self._take_header(*fields)
            else:
                self._take_object(*fields)

    def _take_header(
        self,
        history: tuple[int, bytes | None],
        size: int,
        objects: list[tuple[Any, ...]],
        atomics: list[tuple[Any, ...]],
        manager: tuple[Any, ...],
    ) -> None:
        runtime = self.runtime
        runtime.dispatched, chain = history
        if runtime.chain is not None and chain is not None:
            runtime.chain = chain
        runtime.replicas.extend([None] * (size - len(runtime.replicas)))
        for number, *fields in objects:
            replica = Replica(runtime, number, *fields)
            runtime.replicas[number] = replica
            info = classes.lookup(replica.class_name)
            if info is None or info.digest != replica.digest:
                replica.hold(UNDECLARED)
            else:  # before any state, since states refer to objects
                runtime.manager.attach(replica, info.blank(), info)
        runtime.manager.restore(manager)
        for source, ticket, name, values, *place in atomics:
            atomic = classes.lookup_atomic(name)
            *args, named = runtime.codec.decode(values)
            call = Call(runtime, atomic.atomic if atomic else None, 0, None, tuple(args), named)
            call.of(source, ticket, None).at(*place)
            found = [runtime.replica_of(value) for value in (*args, *named.values())]
            call.waits_for([replica for replica in found if replica is not None])
            runtime.waiting[source, ticket] = call

    def _take_object(
        self,
        number: int,
        state: bytes | None,
        pending: Any,
        calls: list[tuple[Any, ...]],
    ) -> None:
        runtime = self.runtime
        replica = runtime.replicas[number]
        replica.hold(0)  # until its state is there
        replica.pending = pending if state is None else state
        for source, ticket, seqno, index, stamp, code, raw in calls:
            if raw is None:
                replica.add_waiting(runtime.waiting[source, ticket])
                continue
            call = Call(runtime, None, code, raw).of(source, ticket, None).at(seqno, index, stamp)
            if state is None:
                call.submit_for([replica])
            else:
                call.waits_for([replica])
                replica.add_waiting(call)
                runtime.waiting[source, ticket] = call
        if not replica.has(UNDECLARED):
            runtime.manager.come_to_life(replica, classes.lookup(replica.class_name))


def _cut(record: bytes) -> Iterator[bytes]:
    """The pieces of one record."""
    for begin in range(0, len(record), PIECE_MAX):
        last = begin + PIECE_MAX >= len(record)
        yield (b"\1" if last else b"\0") + record[begin : begin + PIECE_MAX]
