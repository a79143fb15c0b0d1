"""What an endpoint does that is in no view: it asks to be let in, or makes the group with all others.

The clock is the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.attribution import check_sender
from orcalike.transport.membership.bootstrap import Bootstrap
from orcalike.transport.membership.effects import Effect
from orcalike.transport.membership.join_request import JoinRequest
from orcalike.transport.membership.messages import ControlMessage, Inside, Join, Nowhere, Taken
from orcalike.transport.view import Member

if TYPE_CHECKING:
    from orcalike.transport.membership.attribution import Greeted


if TYPE_CHECKING:

    class Peer(Greeted, Protocol):
        """The other end of a link, which may have greeted."""

        @property
        def link(self) -> int:
            """Below 0 if none stands."""

    class Port(Protocol):
        """What this needs of the layer that it works for."""

        def contact_with(self, address: str, message: ControlMessage) -> None:
            """Send a control message to the endpoint at an address."""

        def mark(self, step: str) -> None:
            """A step of the protocol was reached."""

        def plan(self) -> None:
            """A deadline has changed."""

        def join_failed(self, why: str) -> None:
            """It is not in yet: it is to be tried again, or elsewhere."""

        def make_group(self, joiners: list[Nowhere]) -> None:
            """Make the group, and let these in."""

        def changed(self, change: Effect) -> None:
            """A role's state is another one."""


class Outside:
    """An endpoint that is in no view, as it is before its first, and for good once it is out."""

    def __init__(
        self, port: Port, me: Member, options: dict[str, Any], ranks: int, detection: int
    ) -> None:
        """`ranks` make the group together, 0 if it is made otherwise; `detection` is D in ns."""
        self._port = port
        self.request = JoinRequest(port, me, options)
        self.bootstrap = Bootstrap(port, self.request.ask, me, options, ranks, detection)

    @property
    def deadline(self) -> int | None:
        """When `expire` is due, ns; None if nothing waits for the time."""
        times = (self.request.deadline, self.bootstrap.deadline)
        return min((each for each in times if each is not None), default=None)

    @property
    def wants_in(self) -> bool:
        """Whether it is to be in a view: it has asked to be let in, perhaps in a round that is over."""
        return bool(self.request.address) or self.bootstrap.round > 0

    def expire(self, now: int) -> None:
        """The deadline may have come."""
        self.request.expire(now)
        self.bootstrap.expire(now)

    def entered(self) -> None:
        """It is in a view."""
        self.request.answered()
        self.bootstrap.entered()

    def end(self) -> None:
        """It is out for good."""
        self.request.end()
        self.bootstrap.end()

    def asked(self, join: Join, now: int) -> None:
        """A process asks this one to be let in; raises ProtocolError if it may make no group."""
        if join.round and join.member.rank != 0:
            raise ProtocolError(f"a round of {join.member}")
        self.bootstrap.asked(join.member, join.round, now)

    def answered(self, message: Nowhere | Taken | Inside, peer: Peer, now: int) -> None:
        """A process has answered a JOIN; raises ProtocolError if it speaks for another one."""
        if isinstance(message, Nowhere):
            check_sender(message, peer)
        self.linked(peer, now)
        if message.round:
            self.bootstrap.answered(message, (peer.address, peer.reached_at), now)
        elif self._was_asked(peer) and self.request.deadline is not None:
            self.request.answered()
            self._port.plan()
            self._port.join_failed(f"{peer.address} is in no group yet")

    def lost(self, peer: Peer, why: str, now: int) -> None:
        """A link broke, or could not be made."""
        if peer.link < 0:
            self.bootstrap.lost((peer.address, peer.reached_at), peer.incarnation, why, now)
        if self._was_asked(peer):
            self._port.join_failed(why)

    def _was_asked(self, peer: Peer) -> bool:
        """Whether it is the endpoint that is to let this one in."""
        return self.request.address in (peer.address, peer.reached_at)

    def linked(self, peer: Peer, now: int) -> None:
        """A link stands, or its peer was heard."""
        for address in (peer.address, peer.reached_at):
            self.bootstrap.linked(address, peer.incarnation, now)
