"""The state of a group, given to joiners (A44, H76).

A snapshot is the state at one place in the order, and leaves in pieces while the others go on. It has
parts: the head, the table of objects, then of each object its creation or its state, and the calls
that wait there. Each is made when the joiner is about to take it, so nothing is held twice.

A write that is about to touch an object of which something is still to be given packs that first,
within KEPT_MAX bytes for each joiner. Where these do not do, the object is held, and the write waits in
its lock queue, until what is left of the object is given: that goes first, and where several are held,
a part of each in turn. So the extra memory is bounded, and what is slowed down is the writes, here
alone, to an object that is larger than that; those to small ones wait for a few pieces at the most.
An object with a queue from before the snapshot is packed when that has run.

All parts are made by the thread that runs in the stack, and no other goes on there meanwhile: a
snapshot is in the middle of one part at a time. Where another thread comes to an object's turn (a pop-up,
or one that lets a mutex go), it leaves the object held, and has it packed there.

What cannot be given (a type that does not travel, a `snapshot` that raises) ends the snapshot and not
the giver: the joiner is notified of the reason.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from orcalike.runtime.replica import LOCKED, QUEUED, UNDECLARED, UNPACKED, Replica
from orcalike.runtime.state_parts import MORE, PART, Part, StateParts
from orcalike.runtime.task import KEPT, OVER, Task
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.wording import repr_of, text_of

PIECE_MAX = 65_536
"""Bytes of a piece: some hundred microseconds of another member's time."""
KEPT_MAX = 16_777_216
"""Bytes of objects that were packed before their turn, for one joiner."""

_log = logging.getLogger("orcalike")

T = TypeVar("T")


if TYPE_CHECKING:
    from orcalike.runtime.state_parts import Stateful

    class Giving(Stateful, Protocol):
        """The runtime, as far as giving its state takes it."""

        core: Core

        def more_state(self) -> None:
            """A piece that a joiner waits for may be there now."""

        def proceed_with(self, layer: Layer) -> None:
            """Have it go on where the stack runs."""


class _Packing(Task):
    """Packs an object in its turn, and holds it until what is left of it is given."""

    def __init__(self, share: _Share, *, for_write: bool) -> None:
        self.share = share
        self.for_write = for_write

    def run(self) -> int:
        return KEPT if self.share.snapshot.donor.take_turn(self) else OVER

    def run_later(self) -> None:
        """The turn had come on another thread, which has left the object held."""
        if not self.share.hold(self):
            self.finished()


class _Turns(Layer):
    """What has come to snapshots on threads that did not run in the stack."""

    def __init__(self, donor: Donor) -> None:
        super().__init__(donor.runtime.core)
        self.donor = donor
        self.tasks: deque[_Packing] = deque()
        """Of objects whose turn has come."""

    def add(self, task: _Packing) -> None:
        """Pack this one where the stack runs."""
        self.tasks.append(task)
        self.donor.runtime.proceed_with(self)

    def proceed(self) -> None:
        self.donor.run_aside(self._go_on)

    def _go_on(self) -> None:
        failure = self.donor.failure
        if failure is not None:
            for snapshot in list(self.donor.snapshots):
                snapshot.fail(failure)
        while self.tasks:
            self.tasks.popleft().run_later()


class _Share:
    """What one snapshot has of one object."""

    def __init__(self, snapshot: Snapshot, replica: Replica, parts: Iterator[Part]) -> None:
        self.snapshot, self.replica, self.parts = snapshot, replica, parts
        self.ready: deque[Part] = deque()
        """Parts that were made before their turn."""
        self.waits = False
        """What was queued before the snapshot has not run yet."""
        self.over = False
        """All parts have been made, or no more are wanted."""
        self.task: _Packing | None = None
        """What holds the object until then."""

    def next_part(self) -> Part | None:
        """The next part to give; None at the end."""
        if self.ready:
            part = self.ready.popleft()
            self.snapshot.kept -= len(part[2])
            if self.task is not None:
                self.pack()
            return part
        return self._make()

    def _make(self) -> Part | None:
        part = None if self.over else next(self.parts, None)
        if part is None:
            self.end()
        return part

    def pack(self) -> bool:
        """Make parts before their turn, as many as may be kept; whether these are all."""
        while not self.over and self.snapshot.kept < self.snapshot.donor.kept_max:
            part = self._make()
            if part is not None:
                self.ready.append(part)
                self.snapshot.kept += len(part[2])
        return self.over

    def hold(self, task: _Packing) -> bool:
        """The object's turn has come: pack it, and say whether it is to be held."""
        self.waits = False
        self.snapshot.donor.runtime.more_state()
        if self.over:
            return False
        if not task.for_write and not self.replica.has(QUEUED):
            self.lie()
        elif not self.snapshot.packed(self):
            self.task = task
            self.snapshot.held.append(self)
            return True
        return False

    def lie(self) -> None:
        """The object is as it is to be given: whatever changes it packs it first."""
        self.replica.snapshots = [*(self.replica.snapshots or ()), self]
        self.replica.mark(UNPACKED)

    def end(self) -> None:
        """Nothing more is made of the object: it may change."""
        self.over = True
        shares = [share for share in self.replica.snapshots or () if share is not self]
        self.replica.snapshots = shares or None
        if not shares:
            self.replica.unmark(UNPACKED)
        task, self.task = self.task, None
        if task is not None:
            self.snapshot.held.remove(self)
            self.snapshot.donor.run_aside(task.finished)


class Snapshot:
    """The state at one place in the order: an iterator of pieces, b"" where the next is not there yet."""

    def __init__(self, donor: Donor) -> None:
        self.donor = donor
        self.kept = 0
        self.held: deque[_Share] = deque()
        """Of the objects that writes wait for."""
        self.failure: Exception | None = None
        self._parts: Iterator[Part] | None = donor.parts.of_head()
        self._left: Part | None = None
        self._over = False
        self._count = 0
        self._shares: deque[_Share] = deque()
        try:
            for replica in donor.parts.replicas():
                self._begin(replica)
        except Exception as error:
            self.fail(error)
            raise

    def _begin(self, replica: Replica) -> None:
        self._count += 1
        parts = self.donor.parts.of(replica, self.donor.piece_max - PART.size)
        share = _Share(self, replica, parts)
        self._shares.append(share)
        if replica.has(UNDECLARED):
            return  # its parts know what they are, and it can change
        if replica.has(LOCKED | QUEUED):
            share.waits = True
            _Packing(share, for_write=False).submit_for([replica])
        else:
            share.lie()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """Raises what stands against giving the state."""
        failure = self.failure or self.donor.failure
        if failure is not None:
            raise failure
        piece = bytearray()
        size = self.donor.piece_max
        part_max = size - PART.size
        while len(piece) < size:
            try:
                part = self._next_part()
            except Exception as error:
                self.fail(error)
                raise
            if part is None:
                break
            kind, number, whole = part
            data = memoryview(whole)
            for begin in range(0, len(data) or 1, part_max):
                last = begin + part_max >= len(data)
                rest = data[begin : begin + part_max]
                piece += PART.pack(kind if last else kind | MORE, number, len(rest))
                piece += rest
                if not last and len(piece) >= size:
                    self._left = (kind, number, data[begin + part_max :])
                    break
        if not piece and self._over:
            raise StopIteration
        return bytes(piece)

    def _next_part(self) -> Part | None:
        """The next part; None if there is none, or none yet."""
        part, self._left = self._left, None
        if part is not None:
            return part
        if self._parts is not None:
            part = next(self._parts, None)
            if part is not None:
                return part
            self._parts = None
        while self._shares:
            share = self._choose()
            if share is None:
                return None
            part = share.next_part()
            if part is not None:
                return part
            self._shares.remove(share)
        if self._over:
            return None
        self._over = True
        return self.donor.parts.of_end(self._count)

    def _choose(self) -> _Share | None:
        """Whose part comes next: of what writes wait for, in turn, or else the next object's."""
        if self.held:
            self.held.rotate(-1)
            return self.held[-1]
        for _ in range(len(self._shares)):
            if not self._shares[0].waits:
                return self._shares[0]
            self._shares.rotate(-1)
        return None

    def packed(self, share: _Share) -> bool:
        """Pack an object before it changes: whether it may."""
        try:
            return share.pack()
        except Exception as error:  # noqa: BLE001 - whatever it is, the giver goes on
            self.fail(error)
            return True

    def fail(self, error: Exception) -> None:
        """The state cannot be given."""
        self.failure = error
        self.donor.say(error)
        self.close()

    def close(self) -> None:
        """No more is wanted: nothing waits for it."""
        shares, self._shares = self._shares, deque()
        self._parts = self._left = None
        self._over = True
        self.donor.snapshots.discard(self)
        for share in shares:
            share.ready.clear()
            share.parts = iter(())
            share.end()


class Donor:
    """Gives the state of one runtime."""

    def __init__(self, runtime: Giving) -> None:
        self.runtime = runtime
        self.piece_max, self.kept_max = PIECE_MAX, KEPT_MAX
        self.parts = StateParts(runtime)
        self.snapshots: set[Snapshot] = set()
        self._turns = _Turns(self)
        self.failure: Exception | None = None
        """Why this replica's state is not the group's."""
        self._said: set[str] = set()

    def fail(self, error: Exception) -> None:
        """This replica has diverged, on whatever thread: its state is for no joiner, nor is the rest of it."""
        self.failure = error
        if self.snapshots:
            self.runtime.proceed_with(self._turns)

    def give(self) -> Snapshot:
        """The state as it stands now. Raises ReplicaDivergence if it is not the group's."""
        if self.failure is not None:
            raise self.failure
        snapshot = Snapshot(self)
        self.snapshots.add(snapshot)
        return snapshot

    def forget(self) -> None:
        """The member joins again: no joiner gets any more from it, and its objects are set anew."""
        self.failure = None
        for snapshot in self.snapshots:
            snapshot.held.clear()
        self.snapshots.clear()
        self._turns.tasks.clear()

    def pack(self, replica: Replica) -> None:
        """Pack an object that is about to change; what is not packed is waited for in its queue."""
        shares, replica.snapshots = replica.snapshots or [], None
        replica.unmark(UNPACKED)
        for share in shares:
            if not self.run_aside(share.snapshot.packed, share):
                _Packing(share, for_write=True).submit_for([replica])

    def take_turn(self, task: _Packing) -> bool:
        """An object's turn has come, on whatever thread: whether it is to be held."""
        if not self.runtime.sender.driver.has_this_thread():
            self._turns.add(task)
            return True
        return self.run_aside(task.share.hold, task)

    def run_aside(self, function: Callable[..., T], *args: object) -> T:
        """Run something of a snapshot, and let no other thread take this one's place in the stack."""
        runtime = self.runtime
        return runtime.budget.run_aside(runtime.sender.driver, function, *args)

    def say(self, error: Exception) -> None:
        """Log why the state cannot be given, once."""
        text = text_of(error) or repr_of(error)
        if text not in self._said and len(self._said) < 256:
            self._said.add(text)
            _log.error("a joiner does not get the state of the group from here: %s", text)
