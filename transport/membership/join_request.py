"""This endpoint's own request to be let in: JOIN, repeated until the group has answered (Horus 4.3).

It goes through any member. The clock is the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from orcalike.transport.membership.messages import ControlMessage, Join
from orcalike.transport.view import Member

ASK_AGAIN = 1_000_000_000
"""After so many ns it is asked again."""


if TYPE_CHECKING:

    class Port(Protocol):
        """What this needs of the layer that it works for."""

        def contact_with(self, address: str, message: ControlMessage) -> None:
            """Send a control message to the endpoint at an address."""

        def mark(self, step: str) -> None:
            """A step of the protocol was reached."""

        def plan(self) -> None:
            """A deadline has changed."""

        def join_failed(self, why: str) -> None:
            """The member that was asked has not let this one in in time; another may be asked, too."""


class JoinRequest:
    """The address that a join goes through, and when to ask again."""

    def __init__(self, port: Port, me: Member, options: dict[str, Any]) -> None:
        """`options` are the group's as this endpoint wants them; None if it accepts any."""
        self._port = port
        self._join = Join(me, {name: it for name, it in options.items() if it is not None})
        self.address: str | None = None
        """None before the first request, and for good once this endpoint is out."""
        self.deadline: int | None = None
        """When to ask again, in ns; None while no answer is waited for."""

    def ask(self, address: str, now: int) -> None:
        """Ask the endpoint at `address` to be let in."""
        self.address = address
        self._port.contact_with(address, self._join)
        self._port.mark("J1")
        self.deadline = now + ASK_AGAIN
        self._port.plan()

    def expire(self, now: int) -> None:
        """Ask again, if it is time to."""
        if self.deadline is not None and now >= self.deadline and self.address is not None:
            self.ask(self.address, now)
            self._port.join_failed(f"{self.address} has not let this process in")

    def answered(self) -> None:
        """The group has answered: nothing is repeated."""
        self.deadline = None

    def end(self) -> None:
        """This endpoint is out for good."""
        self.address = self.deadline = None
