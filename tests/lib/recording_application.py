"""The layer above a stack in tests: it records all that it sees, and tells the monitor.

The checkers are those of the simulator. There a body says which cast it is; here tests cast what they
like, so the monitor looks it up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from zlib import crc32

import msgpack

from orcalike.simulator.checkers.facts import Installed
from orcalike.simulator.checkers.monitor import Monitor
from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message

Event = tuple[int, int, int, bytes] | Installed
"""What an application sees: (seqno, index, sender, body), or a view."""


class AnyBodies(Monitor):
    """All checkers, over casts whose bodies do not say which cast they are."""

    def number(self, member: int, source: int, body: bytes) -> int:
        """The sender's next cast if that has this body, else the first that has it, else 0."""
        casts, last = self.facts.casts, self.facts.sent.get(source, 0)
        following = self.seen(member).sources.get(source, 0) + 1
        numbers: list[int] = [following, *range(1, last + 1)]
        found = (n for n in numbers if (source, n) in casts and casts[source, n].body == body)
        return next(found, 0)


class RecordingApplication(Layer):
    """A replica whose state is its history, so that any difference shows."""

    def __init__(self, core: Core, monitor: Monitor | None = None, piece: int = 8) -> None:
        super().__init__(core)
        self.me = core.me.incarnation
        self.is_witness = core.me.witness
        self.monitor = monitor
        """None: no checker looks at this."""
        self.piece = piece
        """How many events a piece of state holds."""
        self.history: list[Event] = []
        self.stamps: list[int] = []
        """The clock of the order, at each cast that was delivered here."""
        self.installed: View | None = None
        self.exited: str | None = None
        self.sends: list[tuple[int, bytes]] = []
        self.problems: list[str] = []
        self.errors: list[str] = []
        self.failed: list[str] = []
        """Why it could not join."""
        self.denied: list[str] = []
        self.on_exit: Callable[[], None] = lambda: None
        self._taken: list[Event] = []

    @property
    def bodies(self) -> list[bytes]:
        """What was delivered, in its order."""
        return [cast[3] for cast in self.casts]

    @property
    def casts(self) -> list[tuple[int, int, int, bytes]]:
        """The same, each with its place in the order and its sender."""
        return [event for event in self.history if not isinstance(event, Installed)]

    def sender(self, position: int) -> Member:
        """The member at a position, or one that left, whose packet comes after the view without it."""
        assert self.installed is not None
        return (
            self.installed.members[position] if position >= 0 else self.core.departed[-2 - position]
        )

    def up_cast(self, message: Message) -> None:
        source = self.sender(message.source).incarnation
        body = message.body
        self.stamps.append(message.stamp)
        self.history.append((message.seqno, message.index, source, body))
        if self.monitor is not None:
            place = message.seqno, message.index
            self.monitor.deliver(self.me, place, source, body)

    def up_send(self, message: Message) -> None:
        assert self.installed is not None
        self.sends.append((message.source, message.body))

    def up_view(self, view: View, cut: bytes) -> None:
        seen = Installed(
            view.identity,
            tuple(member.incarnation for member in view.members),
            frozenset(member.incarnation for member in view.members if member.witness),
        )
        if self._taken:
            self.history, self._taken = self._taken, []
            self._tell_state()
        else:
            self.history.append(seen)
        self.installed = view
        if self.monitor is not None and view.position(self.me) >= 0:
            self.monitor.view(self.me, seen)
            if not self.is_witness:
                self.monitor.state(self.me, seen, crc32(repr(self.casts).encode()))

    def _tell_state(self) -> None:
        """What was delivered at others, and is in the state that this member was given."""
        if self.monitor is None or not self.casts:
            return
        counts = Counter(source for _, _, source, _ in self.casts)
        self.monitor.take_state(self.me, self.casts[-1][:2], counts)

    def up_give_state(self) -> Iterator[bytes]:
        events = list(self.history)
        for start in range(0, len(events), self.piece):
            yield msgpack.packb([pack(event) for event in events[start : start + self.piece]])

    def up_begin_state(self) -> None:
        self._taken = []

    def up_take_state(self, piece: bytes) -> None:
        try:
            self._taken += [unpack(fields) for fields in msgpack.unpackb(piece, use_list=False)]
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"a piece of state that cannot be read: {error}") from None

    def up_exit(self, why: str) -> None:
        self.exited = why
        if self.monitor is not None:
            self.monitor.exit(self.me, why)
        self.on_exit()

    def up_problem(self, member: object, why: str) -> None:
        self.problems.append(f"{member}: {why}")

    def up_system_error(self, why: str) -> None:
        self.errors.append(why)

    def up_join_failed(self, why: str) -> None:
        self.failed.append(why)

    def up_join_denied(self, why: str) -> None:
        self.denied.append(why)


def pack(event: Event) -> tuple[object, ...]:
    """As something that msgpack can carry."""
    if isinstance(event, Installed):
        return (event.identity, event.members, sorted(event.witnesses))
    return event


def unpack(fields: tuple[object, ...]) -> Event:
    """From what `pack` made."""
    match fields:
        case [tuple(identity), tuple(members), tuple(witnesses)]:
            return Installed(identity, members, frozenset(witnesses))
        case [int(seqno), int(index), int(source), bytes(body)]:
            return seqno, index, source, body
    raise ValueError(f"not an event: {fields!r}")
