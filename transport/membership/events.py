"""What a step of the agreement on views begins with: a message, or what happens at this member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from orcalike.transport.membership.messages import ControlMessage, Value
from orcalike.transport.record import Record
from orcalike.transport.view import Member, View

if TYPE_CHECKING:

    class Endpoint(Protocol):
        """The other end of a link that has greeted, and can be answered."""

        @property
        def incarnation(self) -> int: ...

        @property
        def address(self) -> str: ...

        @property
        def position(self) -> int:
            """Its position in the present view; -1 outside."""


class Received(Record):
    """A control message of the member at that position of the view."""

    position: int
    message: ControlMessage


class Proceed(Record):
    """Something may have changed: begin a ballot, or go on with the one under way."""


class Held(Record):
    """The layers above are frozen, and hold this."""

    report: bytes


class CutHeld(Record):
    """A packet was supplied: all of the proposed cut may be here."""


class Installed(Record):
    """A view is in force here, and this member is in it."""

    value: Value


class Exited(Record):
    """This member is out of the group."""


class JoinAsked(Record):
    """A process asks to join; by the member at a position that passes it on, or -1: by itself."""

    member: Member
    options: dict[str, Any]
    position: int


class LeaveAsked(Record):
    """A member asks to leave."""

    incarnation: int


class ResetAsked(Record):
    """Go on with at least `minimum` members; as the one at a position asks, or -1: the program here."""

    minimum: int
    position: int = -1


class Suspected(Record):
    """These members are suspected, and no others."""

    incarnations: frozenset[int]


class Died(Record):
    """A member is certainly dead (H13); `vouched` if its lease to this one was not over."""

    incarnation: int
    vouched: bool


class Expelled(Record):
    """Members are too slow for the layers above, or they lie: out at the next view."""

    incarnations: tuple[int, ...]


class WentOn(Record):
    """An endpoint says that the group has gone on with a later view without this member, which `leaves`, or does not."""

    view: View
    sender: Endpoint | None
    """None if it cannot be answered."""
    leaves: bool
    why: str
    """For people; "" if the endpoint does not know."""


class Hangs(Record):
    """A member did not answer for `slow_timeout`."""

    incarnation: int


class Overdue(Record):
    """A change of view takes `slow_timeout`: members that have not reported hang."""


class Unsettled(Record):
    """A link broke: only a new view closes the gap."""


class Reachable(Record):
    """A member can be reached anew: what was under way to it may be lost."""

    incarnation: int


class AskAgain(Record):
    """While the group is blocked: missing members may be there, and in another view."""


class LeasesEnded(Record):
    """The driver grants no leases any more: incarnation and time of the last to each member."""

    granted: tuple[tuple[int, int], ...]


Event = (
    Received
    | Proceed
    | Held
    | CutHeld
    | Installed
    | Exited
    | JoinAsked
    | LeaveAsked
    | ResetAsked
    | Suspected
    | Died
    | Expelled
    | WentOn
    | Hangs
    | Overdue
    | Unsettled
    | Reachable
    | AskAgain
    | LeasesEnded
)
