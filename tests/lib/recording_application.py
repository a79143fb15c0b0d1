"""What stands on top of each simulated stack: it keeps all that it sees, and tells the checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgpack

from orcalike.transport.errors import ProtocolError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message
from tests.protocol.checkers import Checker, Event, Installed


class Application(Layer):
    """A replica whose state is its history, so that any difference shows."""

    def __init__(self, core: Core, watch: Checker, piece: int = 8) -> None:
        super().__init__(core)
        self.me = core.me.incarnation
        self.watch = watch
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
        return [event[3] for event in self.history if not isinstance(event, Installed)]

    def sender(self, place: int) -> Member:
        """The member at a place, or one that left, whose packet comes after the view without it."""
        assert self.installed is not None
        return self.installed.members[place] if place >= 0 else self.core.departed[-2 - place]

    def up_cast(self, message: Message) -> None:
        source = self.sender(message.source).incarnation
        body = message.body
        self.stamps.append(message.stamp)
        self.history.append((message.seqno, message.index, source, body))
        self.watch.deliver(self.me, (message.seqno, message.index), source, body)

    def up_send(self, message: Message) -> None:
        assert self.installed is not None
        self.sends.append((message.source, message.body))

    def up_view(self, view: View, cut: bytes) -> None:
        seen = Installed(
            view.identity,
            tuple(member.incarnation for member in view.members),
            tuple(member.incarnation for member in view.members if not member.witness),
        )
        if self._taken:
            self.history, self._taken = self._taken, []
            self.watch.state(self.me, self.history)
        else:
            self.history.append(seen)
        self.installed = view
        if view.place(self.me) >= 0:  # else it is the view without this member
            self.watch.view(self.me, seen)

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
        self.watch.exit(self.me)
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
        return (event.identity, event.members, event.replicas)
    return event


def unpack(fields: tuple[object, ...]) -> Event:
    """From what `pack` made."""
    match fields:
        case [tuple(identity), tuple(members), tuple(replicas)]:
            return Installed(identity, members, replicas)
        case [int(seqno), int(index), int(source), bytes(body)]:
            return seqno, index, source, body
    raise ValueError(f"not an event: {fields!r}")
