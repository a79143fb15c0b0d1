"""Evidence of what was delivered (I1), for `ORCALIKE_CHECK=order` and for histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orcalike.runtime.digests import Digests
from orcalike.runtime.object_table import ObjectTable
from orcalike.runtime.replica import Replica
from orcalike.runtime.sender import Sender
from orcalike.transport.view import Member, View
from orcalike.transport.wire.digest import blake2b
from orcalike.transport.wire.message import Message

if TYPE_CHECKING:

    class Delivering(Protocol):
        """The runtime, as far as evidence of its deliveries takes it."""

        chain: bytes | None
        look_always: bool
        digests: Digests | None
        table: ObjectTable

        @property
        def sender(self) -> Sender:
            """With the history, if one is kept."""

        @property
        def view(self) -> View:
            """The one in which messages are delivered."""

        @property
        def replicas(self) -> list[Replica | None]:
            """By number."""

        def member_at(self, position: int) -> Member:
            """The member at a position in the view."""

        def digest_of(self, replica: Replica) -> bytes:
            """The object's state, encoded in one way only."""


def note_delivery(runtime: Delivering, message: Message) -> None:
    """Keep evidence of a delivery: the digest over all of them, and the history."""
    assert runtime.chain is not None
    if runtime.look_always:
        assert runtime.digests is not None
        runtime.digests.due(message.seqno, message.index, message.stamp)
    source = runtime.member_at(message.source)
    place = f"{message.seqno} {message.index} {source.incarnation} {message.ticket} ".encode()
    runtime.chain = blake2b(runtime.chain + place + message.body, digest_size=16).digest()
    if runtime.sender.history is not None:
        runtime.sender.history.delivered(
            runtime.view,
            (message.seqno, message.index),
            source,
            message.ticket,
            message.body,
            runtime.replicas,
            runtime.table.names,
            runtime.chain,
        )


def record_states(runtime: Delivering) -> None:
    """Put the digest of each object's state into the history."""
    history = runtime.sender.history
    assert history is not None
    for replica in runtime.replicas:
        if replica is not None:
            history.state(replica, runtime.digest_of)
