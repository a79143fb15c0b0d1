"""Which control messages are believed from which endpoints: a table.

What a non-member sends changes nothing here, but for what the protocol needs of it: it may ask to
join, it may ask what it has missed, and it may answer what this endpoint has asked *it*. An
endpoint is the incarnation and address of its greeting. These are its own claims: processes that
may connect at all (of the same user on a Unix socket, with the key on TCP) could make up others.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.messages import Join, Nowhere, kind_of
from orcalike.transport.view import View


class Standing(Flag):
    """What the sender of a message is to the endpoint that gets it."""

    ANY = auto()
    """An endpoint that has greeted."""
    POSITION = auto()
    """A member that speaks in the present view, from its position."""
    MEMBER = auto()
    """A member of the present view that speaks outside of it."""
    FORMER = auto()
    """A member of an earlier view that this endpoint was in."""
    ASKED = auto()
    """An endpoint that this one has asked, since its view was installed."""
    STATED = auto()
    """A member of the view that the message is about, where this endpoint is in none yet."""


BELIEVED: dict[str, Standing] = {
    "JOIN": Standing.ANY,
    "BEHIND": Standing.ANY,
    "NOWHERE": Standing.ASKED,
    "TAKEN": Standing.ASKED,
    "INSIDE": Standing.ASKED,
    "DENIED": Standing.POSITION | Standing.ASKED,
    "INSTALL": Standing.POSITION | Standing.MEMBER | Standing.ASKED | Standing.STATED,
    "EXPELLED": (
        Standing.POSITION | Standing.MEMBER | Standing.FORMER | Standing.ASKED | Standing.STATED
    ),
    "SHIP": Standing.POSITION | Standing.MEMBER | Standing.ASKED,
    "GONE": Standing.MEMBER | Standing.FORMER,
    "LEAVE": Standing.POSITION,
    "HERE": Standing.POSITION,
    "HELD_UP": Standing.POSITION,
    "WAITS": Standing.POSITION,
    "ALIVE": Standing.POSITION,
    "SLOW": Standing.POSITION,
    "RESET": Standing.POSITION,
    "RESET_FAILED": Standing.POSITION,
    "FLUSH": Standing.POSITION,
    "FLUSH_OK": Standing.POSITION,
    "PROMISED": Standing.POSITION,
    "PROPOSE": Standing.POSITION,
    "ACCEPT": Standing.POSITION,
    "CHOSEN": Standing.POSITION,
    "BLOCKED": Standing.POSITION,
    "LOST": Standing.POSITION,
}
"""By the kind of a message: the senders of which it is believed; from others it is dropped, and counted."""


class Speaker(NamedTuple):
    """The endpoint that sent a control message."""

    position: int
    """The position in the present view that it speaks from; -1 if it speaks outside of the view."""
    incarnation: int
    address: str
    reached_at: str = ""
    """Where it was asked, if it has another address."""


if TYPE_CHECKING:

    class Greeted(Protocol):
        """The other end of a link, as it has greeted."""

        @property
        def incarnation(self) -> int | None: ...

        @property
        def address(self) -> str: ...

        @property
        def reached_at(self) -> str:
            """Where it was asked, if it has another address."""


def check_sender(message: Join | Nowhere, sender: Greeted) -> None:
    """Raise ProtocolError if a message that an endpoint sends for itself names another one."""
    member = message.member
    if (sender.address, sender.incarnation) != (member.address, member.incarnation):
        raise ProtocolError(f"{message.kind} for another endpoint")


def is_believed(
    fields: list[Any],
    speaker: Speaker,
    view: View | None,
    former: Container[int],
    questioned: Container[str],
) -> bool:
    """Whether a control message is believed from its sender; raises ProtocolError if it is none.

    `view` is the present one, or None; `former` are members of earlier views, and `questioned` the
    addresses that were asked anything since the view was installed.
    """
    return bool(BELIEVED[kind_of(fields)] & _standing(fields, speaker, view, former, questioned))


def _standing(
    fields: list[Any],
    speaker: Speaker,
    view: View | None,
    former: Container[int],
    questioned: Container[str],
) -> Standing:
    standing = Standing.ANY
    if view is not None and speaker.position >= 0:
        return standing | Standing.POSITION
    if view is not None and view.position(speaker.incarnation) >= 0:
        standing |= Standing.MEMBER
    if speaker.incarnation in former:
        standing |= Standing.FORMER
    if any(each and each in questioned for each in (speaker.address, speaker.reached_at)):
        standing |= Standing.ASKED
    if view is None and fields[0] in ("INSTALL", "EXPELLED"):
        match fields:
            case [_, [*packed], *_] if View.unpack(packed).position(speaker.incarnation) >= 0:
                standing |= Standing.STATED
    return standing
