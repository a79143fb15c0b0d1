"""What follows from a step of the agreement on views: values, which the layer carries out in their order.

A step only says what is to be done (`Agreement.step`); MBRSHIP does it. What comes back while it does, such
as the report of a layer above that was frozen, is another step, and its effects are carried out
before the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.messages import ControlMessage
from orcalike.transport.view import Member, View


@dataclass(frozen=True, slots=True)
class Send:
    """A control message to the member at that position of the view."""

    position: int
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class Contact:
    """A control message to the endpoint at an address, in the view or not."""

    address: str
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class Freeze:
    """The layers above stop, and say what they hold: `events.Held`."""


@dataclass(frozen=True, slots=True)
class Supply:
    """A packet that was missing here, for the layers above."""

    piece: bytes


@dataclass(frozen=True, slots=True)
class InstallView:
    """A view was decided on: it is to be the view, after the cut."""

    view: View
    cut: bytes


@dataclass(frozen=True, slots=True)
class Grant:
    """Grant leases to the others of the view from here on, or no more."""

    granting: bool


@dataclass(frozen=True, slots=True)
class Wake:
    """Proceed at that time, ns: a lease is over then."""

    at: int


@dataclass(frozen=True, slots=True)
class Seek:
    """A view goes on without this member, which may live: make a link to it, and notify it."""

    member: Member


@dataclass(frozen=True, slots=True)
class ReportBlocked:
    """No primary view can be formed now: by which rule, and which members are waited for."""

    missing: tuple[Member, ...]
    rule: str


@dataclass(frozen=True, slots=True)
class RefuseReset:
    """The program's reset does not go on, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """The protocol passes a failpoint."""

    step: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """Proceed when this input is over: requests that come together change one view."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Proceed as soon as the effects before this one are carried out."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A role is in another state (`state`); all of them by name."""

    role: str
    before: str
    cause: str
    after: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """What arrived cannot be believed: it is the sender's fault."""

    error: ProtocolError


Effect = (
    Send
    | Contact
    | Freeze
    | Supply
    | InstallView
    | Grant
    | Wake
    | Seek
    | ReportBlocked
    | RefuseReset
    | Mark
    | Schedule
    | Continue
    | Changed
    | Refuse
)
