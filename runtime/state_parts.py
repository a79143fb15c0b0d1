"""The parts of a group's state, as they travel to joiners.

First the head, the table of objects; then of each object its creation or its state, and the calls that
wait there. Each is made when it is asked for.

A part is  kind (1), 0x80 in it where more of it follows | number of the object (4) | bytes (4) | these.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from orcalike.runtime.atomic import Atomic
from orcalike.runtime.call import Call, waiting_calls
from orcalike.runtime.changes import Change
from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.manager import Manager
from orcalike.runtime.object_table import ObjectTable
from orcalike.runtime.operation import Operation
from orcalike.runtime.replica import UNDECLARED, Replica
from orcalike.runtime.sender import Sender
from orcalike.runtime.state import what
from orcalike.runtime.state_hooks import give_state
from orcalike.runtime.stream_encoder import Encoder
from orcalike.runtime.task import Task, queued_at
from orcalike.runtime.time_budget import TimeBudget
from orcalike.transport.wording import repr_of

HEAD, ENDED, TABLE, OBJECT, STATE, TASK, DONE, END = range(1, 9)
"""The kinds of parts: DONE is the end of an object, END that of the state, with the number of objects."""
MORE = 0x80
PART = struct.Struct(">BII")

BATCH = 256
"""Entries of the table in one part."""

Part = tuple[int, int, bytes | memoryview]


if TYPE_CHECKING:

    class Stateful(Protocol):
        """The runtime, as far as it is given."""

        chain: bytes | None

        @property
        def sender(self) -> Sender:
            """With the codec."""

        @property
        def budget(self) -> TimeBudget:
            """For the hooks that it runs."""

        @property
        def manager(self) -> Manager:
            """With what belongs to no object."""

        @property
        def table(self) -> ObjectTable:
            """With the names, and what was ended."""

        @property
        def replicas(self) -> list[Replica | None]:
            """By number."""

        @property
        def dispatched(self) -> int:
            """Messages so far."""


class StateParts:
    """Makes the parts of one runtime's state."""

    def __init__(self, runtime: Stateful) -> None:
        self._runtime = runtime

    def replicas(self) -> list[Replica]:
        """All objects."""
        return [replica for replica in self._runtime.replicas if replica is not None]

    def of_head(self) -> Iterator[Part]:
        """What belongs to no object, and the table."""
        runtime, manager = self._runtime, self._runtime.manager
        history = (runtime.dispatched, runtime.chain)
        head = self._encode((history, len(runtime.replicas), manager.snapshot()))
        ended = self._ended()
        named = set(runtime.table.names.values())
        entries = [(replica, replica.number in named) for replica in self.replicas()]
        return self._head_and_table(head, ended, entries)

    def of(self, replica: Replica, size: int) -> Iterator[Part]:
        """Of one object, `size` bytes each: what it is now if it waits for its class, else what it is when asked."""
        if replica.number in self._runtime.table.lost:
            return self._lost(replica.number)
        if replica.has(UNDECLARED) or replica.number in self._runtime.table.unmade:
            tasks = [(False, *self._task(task)) for task in queued_at(replica)]
            waits = [(True, *self._task(call)) for call in waiting_calls(replica)]
            return self._undeclared(
                replica.number, replica.name, replica.arguments, replica.pending, [*waits, *tasks]
            )
        return self._object(replica, size)

    def of_end(self, count: int) -> Part:
        """The last one: there were so many objects."""
        return END, 0, self._encode(count)

    def _head_and_table(
        self, head: bytes, ended: bytes, entries: list[tuple[Replica, bool]]
    ) -> Iterator[Part]:
        yield HEAD, 0, head
        yield ENDED, 0, ended
        for begin in range(0, len(entries), BATCH):
            batch = [
                (r.number, r.name, r.class_name, r.digest, r.arguments_digest, r.least, is_named)
                for r, is_named in entries[begin : begin + BATCH]
            ]
            yield TABLE, 0, self._encode(batch)

    def _ended(self) -> bytes:
        """(classes, runs of numbers with the same class) of the objects that were ended."""
        table = self._runtime.table
        runs = [(kind, len(list(run))) for kind, run in groupby(table.ended_objects)]
        packed = b"".join(struct.pack(">HI", kind, count) for kind, count in runs)
        return self._encode((list(table.ended_classes), packed))

    def _lost(self, number: int) -> Iterator[Part]:
        """This member gave the object up, so it cannot give the state."""
        raise NotSerializable(self._runtime.table.lost[number])
        yield  # a generator: it raises when it is asked

    def _undeclared(
        self,
        number: int,
        name: str,
        arguments: bytes | None,
        pending: Any,
        tasks: list[tuple[object, ...]],
    ) -> Iterator[Part]:
        if isinstance(pending, list):
            for piece in pending:
                yield STATE, number, piece
        else:
            yield OBJECT, number, self._encode((arguments, pending), name)
        for task in tasks:
            yield TASK, number, self._encode_task(task, name)
        yield DONE, number, b""

    def _object(self, replica: Replica, size: int) -> Iterator[Part]:
        number, name = replica.number, replica.name
        calls = waiting_calls(replica)
        try:
            state = give_state(self._runtime.budget, self._runtime.sender.driver, replica)
        except Exception as error:
            raise NotSerializable(f"{what(name)}: its snapshot raised {repr_of(error)}") from error
        codec = self._runtime.sender.codec
        encoder = Encoder(codec, state, what(name), size, is_state=True)
        while (piece := encoder.next_piece()) is not None:
            yield STATE, number, piece
        for call in calls:
            yield TASK, number, self._encode_task((True, *self._task(call)), name)
        yield DONE, number, b""

    def _encode(self, value: object, name: str = "the state of the group") -> bytes:
        """One value as it travels."""
        encoded: bytes = self._runtime.sender.codec.encode_value(value, name)
        return encoded

    def _encode_task(self, task: tuple[object, ...], name: str) -> bytes:
        *fields, raw = task
        data = raw if isinstance(raw, bytes) else b""
        head = self._encode(
            (*fields, None if isinstance(raw, bytes) else raw), f"a call of {name!r}"
        )
        return struct.pack(">I", len(head)) + head + data

    def _task(self, task: Task) -> tuple[object, ...]:
        """A task as it travels: its place, whose it is, and what it is."""
        place = (task.seqno, task.index, task.stamp)
        if isinstance(task, Change):
            return (place, *task.pack(), None)
        assert isinstance(task, Call)
        encode, function = self._runtime.sender.codec.encode, task.function
        whose = (task.sender, task.ticket, task.departed, task.size)
        if isinstance(function, Atomic):
            info = function.info
            assert info is not None
            raw = encode((*task.args, task.named), function.name)
            return (place, "atomic", *whose, info.name, info.digest, raw)
        if task.raw is not None:
            return (place, "call", *whose, task.code, task.raw)
        assert isinstance(function, Operation)
        named = (task.named,) if task.named else ()
        code = function.index << 1 | bool(named)
        raw = encode((*task.args, *named), function.title)
        return (place, "call", *whose, code, raw)
