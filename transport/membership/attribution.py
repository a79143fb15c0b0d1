"""Which control messages are believed from which endpoints: a table.

What a non-member sends changes nothing here, but for what the protocol needs of it: it may ask to
join, it may ask what it has missed, and it may answer what this endpoint has asked *it*. An
endpoint is the incarnation and address of its greeting. These are its own claims: processes that
may connect at all (of the same user on a Unix socket, with the key on TCP) could make up others.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Flag, auto
from typing import Any, NamedTuple

from orcalike.transport.membership.messages import kind_of
from orcalike.transport.view import View


class Standing(Flag):
    """What the sender of a message is to the endpoint that gets it."""

    ANY = auto()
    """An endpoint that has greeted."""
    PLACE = auto()
    """A member that speaks in the present view, from its place."""
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
    "DENIED": Standing.PLACE | Standing.ASKED,
    "INSTALL": Standing.PLACE | Standing.MEMBER | Standing.ASKED | Standing.STATED,
    "EXPELLED": (
        Standing.PLACE | Standing.MEMBER | Standing.FORMER | Standing.ASKED | Standing.STATED
    ),
    "SHIP": Standing.PLACE | Standing.MEMBER | Standing.ASKED,
    "GONE": Standing.MEMBER | Standing.FORMER,
    "LEAVE": Standing.PLACE,
    "HERE": Standing.PLACE,
    "WAITS": Standing.PLACE,
    "ALIVE": Standing.PLACE,
    "SLOW": Standing.PLACE,
    "RESET": Standing.PLACE,
    "RESET_FAILED": Standing.PLACE,
    "FLUSH": Standing.PLACE,
    "FLUSH_OK": Standing.PLACE,
    "PROMISED": Standing.PLACE,
    "PROPOSE": Standing.PLACE,
    "ACCEPT": Standing.PLACE,
    "BLOCKED": Standing.PLACE,
    "LOST": Standing.PLACE,
}
"""By the kind of a message: the senders of which it is believed; from others it is dropped, and counted."""


class Speaker(NamedTuple):
    """The endpoint that sent a control message."""

    place: int
    """The place in the present view that it speaks from; -1 if it speaks outside of the view."""
    incarnation: int
    address: str


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
    if view is not None and speaker.place >= 0:
        return standing | Standing.PLACE
    if view is not None and view.place(speaker.incarnation) >= 0:
        standing |= Standing.MEMBER
    if speaker.incarnation in former:
        standing |= Standing.FORMER
    if speaker.address and speaker.address in questioned:
        standing |= Standing.ASKED
    if view is None and fields[0] in ("INSTALL", "EXPELLED"):
        match fields:
            case [_, [*packed], *_] if View.unpack(packed).place(speaker.incarnation) >= 0:
                standing |= Standing.STATED
    return standing
