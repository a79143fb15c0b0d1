"""What follows from a step of the agreement on views: values, which the layer carries out in their order.

A step only says what is to be done (`Agreement.step`); MBRSHIP does it. What comes back while it does, such
as the report of a layer above that was frozen, is another step, and its effects are carried out
before the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership.messages import ControlMessage
from orcalike.transport.record import Record
from orcalike.transport.view import Member, View

if TYPE_CHECKING:
    from orcalike.transport.membership.events import Endpoint


class Send(Record):
    """A control message to the member at that position of the view."""

    position: int
    message: ControlMessage


class Contact(Record):
    """A control message to the endpoint at an address, in the view or not."""

    address: str
    message: ControlMessage


class Freeze(Record):
    """The layers above stop, and say what they hold: `events.Held`."""


class Supply(Record):
    """A packet that was missing here, for the layers above."""

    piece: bytes


class InstallView(Record):
    """A view was decided on: it is to be the view, after the cut."""

    view: View
    cut: bytes


class GoOut(Record):
    """The group has gone on with that view without this member, as an endpoint has said, which is answered."""

    view: View
    sender: Endpoint | None
    why: str


class Grant(Record):
    """Grant leases to the others of the view from here on, or no more."""

    granting: bool
    without: tuple[int, ...] = ()
    """Incarnations of those that get none all the same."""


class Wake(Record):
    """Proceed at that time, ns: a lease is over then."""

    at: int


class Seek(Record):
    """A view goes on without this member, which may live: make a link to it, and notify it."""

    member: Member


class ReportBlocked(Record):
    """No primary view can be formed now: by which rule, and which members are waited for."""

    missing: tuple[Member, ...]
    rule: str


class RefuseReset(Record):
    """The program's reset does not go on, and why."""

    why: str


class Mark(Record):
    """The protocol passes a failpoint."""

    step: str


class Schedule(Record):
    """Proceed when this input is over: requests that come together change one view."""


class Continue(Record):
    """Proceed as soon as the effects before this one are carried out."""


class Changed(Record):
    """A role is in another state (`state`); all of them by name."""

    role: str
    before: str
    cause: str
    after: str


class Refuse(Record):
    """What arrived cannot be believed: it is the sender's fault."""

    error: ProtocolError


Effect = (
    Send
    | Contact
    | Freeze
    | Supply
    | InstallView
    | GoOut
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
