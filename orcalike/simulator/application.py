"""What stands on top of each stack in a scenario: it tells the monitor what it sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol
from zlib import crc32

import msgpack

from orcalike.simulator.checkers.facts import Installed, Key, number_of
from orcalike.simulator.checkers.monitor import Monitor
from orcalike.simulator.scenario import Scenario
from orcalike.transport.drivers.sim import Node, World
from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.base import Layer
from orcalike.transport.stack import Stack
from orcalike.transport.view import Member, View


class Watching(Protocol):
    """A run, as far as its applications take it."""

    scenario: Scenario
    world: World
    monitor: Monitor

    def holders(self, view: View, seqno: int) -> int:
        """How many members of a view hold the packet with that seqno, and all before it (H3)."""

    def is_kept(self, view: View) -> bool:
        """Whether a witness in a view has kept the state."""

    def viewed(self, application: Application) -> None:
        """A view was installed."""

    def exited(self, application: Application) -> None:
        """A member is out."""


class Application(Layer):
    """A replica whose state is a digest of its history, so that any difference shows."""

    node: Node

    def __init__(self, run: Watching, stack: Stack, name: str) -> None:
        super().__init__(stack)
        self.run = run
        self.process = name
        self.stack: Any = stack
        self.me = stack.me.incarnation
        self.transfer: Any = stack.focus("XFER")
        self.membership: Any = stack.focus("MBRSHIP")
        self.entered: View | None = None
        """The view that it is in."""
        self.digest = 0
        self.exited: str | None = None
        self.failed: str | None = None
        """Why it could not join."""
        self.blocked: str | None = None
        """No primary view can be formed: by which rule."""
        self.errors: list[str] = []
        self.creates = self.waits = self.leaves = self.lags = False
        self._joined_at = -1
        """The step in which its first view came: with it comes what was buffered since."""
        self._taken: list[list[Any]] = []
        self._last: Key | None = None
        """Of what its state knows; None if it knows nothing."""
        self._sources: dict[int, int] = {}
        self._count = 0
        """Of casts in the view that its state is as of."""
        self._before: View | None = None
        """The last view without it: it left then, or what comes in it belongs to the state that it is given."""

    @property
    def order_in_memory(self) -> Any:
        """The layer that orders, if it does so in memory; or None."""
        return self.stack.focus("RING")

    @property
    def total(self) -> Any:
        """The layer that orders now; None if there is none."""
        return self.order_in_memory or self.stack.focus("TOTAL")

    @property
    def inside(self) -> bool:
        """It is in the group, as far as it knows."""
        return self.entered is not None and self.exited is None

    def up_cast(self, message: Any) -> None:
        view = self.entered or self._before
        assert view is not None
        position = message.source
        sender = view.members[position] if position >= 0 else self.stack.departed[-2 - position]
        body = message.body
        key: Key = message.seqno, message.index
        self.digest = crc32(body, self.digest)
        if self.entered is None:
            self._last, self._count = key, self._count + 1
            self._sources[sender.incarnation] = number_of(body)
            return
        run = self.run
        holders = None
        if self._joined_at != run.world.steps and run.monitor.is_first(self.me, key):
            holders = run.holders(view, key[0])
        run.monitor.deliver(self.me, key, sender.incarnation, body, holders)

    def up_view(self, view: View, cut: bytes) -> None:
        if view.position(self.me) < 0:
            self._take_before(view)
            return
        members = tuple(member.incarnation for member in view.members)
        witnesses = frozenset(each.incarnation for each in view.members if each.witness)
        whole = self.total.replicas if self.total is not None else None
        start, held = self.total.begins if self.total is not None else (None, None)
        kept = self.run.is_kept(view)
        in_memory = self.order_in_memory is not None
        seen = Installed(view.identity, members, witnesses, kept, whole, in_memory)
        steps = self.run.world.steps
        if self.entered is None and not self.creates:
            self._joined_at = steps
            self._begin()
        here = self._joined_at != steps
        self.entered = view
        self.blocked = None
        monitor = self.run.monitor
        monitor.view(self.me, seen, start if here else None, held if here else None)
        if not here and self._begins_later(view):
            monitor.seen(self.me).count = self._count
        elif not self.stack.me.witness:
            monitor.state(self.me, seen, self.digest)
        self.run.viewed(self)

    def _begins_later(self, view: View) -> bool:
        """Whether its state may be as of a cast in that view: it had to ask for the state again, or a witness gave it."""
        if self.transfer is None or self._before is not None:
            return False
        state = self.transfer.dump()
        return bool(
            (state["start"] and state["epoch"] == view.number) or state["epoch"] > view.number
        )

    def _begin(self) -> None:
        """Take the state that was given, if any was."""
        self._unpack_taken()
        if self._last is not None:
            self.run.monitor.take_state(self.me, self._last, self._sources)

    def _unpack_taken(self) -> None:
        if self._taken:
            self.digest, last, pairs, self._count = self._taken.pop(0)
            self._last = last[0], last[1]
            self._sources = dict(pairs)
            for more in self._taken:
                self._sources.update(more)
            self._taken = []

    def _take_before(self, view: View) -> None:
        """What comes in a view without this member belongs to its state: one that only kept that has given it."""
        self._unpack_taken()
        if self._before is not None:
            self._count = 0  # else the state may be as of the middle of this view
        self._before = view

    def up_give_state(self) -> Iterator[bytes]:
        seen = self.run.monitor.seen(self.me)
        pairs = list(seen.sources.items())
        piece = self.run.scenario.piece
        head = [self.digest, seen.last, pairs[:piece], seen.count]
        return iter(
            [
                msgpack.packb(head),
                *(msgpack.packb(pairs[i : i + piece]) for i in range(piece, len(pairs), piece)),
            ]
        )

    def up_begin_state(self) -> None:
        self._taken = []

    def up_take_state(self, piece: bytes) -> None:
        try:
            self._taken.append(msgpack.unpackb(piece, strict_map_key=False))
        except ValueError as error:
            raise ProtocolError(f"a piece of state that cannot be read: {error}") from None

    def up_exit(self, why: str) -> None:
        self.exited = why
        self.run.monitor.exit(self.me, why)
        self.run.exited(self)

    def up_blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        self.blocked = rule
        self._tell(f"is blocked: {rule}")

    def up_problem(self, member: object, why: str) -> None:
        self._tell(f"suspects {member}: {why}")

    def _tell(self, what: str) -> None:
        if self.run.monitor.observer is not None:
            self.run.monitor.observer(self.me, what)

    def up_system_error(self, why: str) -> None:
        self.errors.append(why)

    def up_join_failed(self, why: str) -> None:
        self.failed = why

    def up_join_denied(self, why: str) -> None:
        self.failed = why

    def up_reset_failed(self, why: str) -> None:
        self.failed = why
