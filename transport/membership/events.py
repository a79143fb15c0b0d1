"""What a step of the agreement on views begins with: a message, or what happens at this member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orcalike.transport.membership.messages import ControlMessage, Value
from orcalike.transport.view import Member


@dataclass(frozen=True, slots=True)
class Received:
    """A control message of the member at that position of the view."""

    position: int
    message: ControlMessage


@dataclass(frozen=True, slots=True)
class Proceed:
    """Something may have changed: begin a ballot, or go on with the one under way."""


@dataclass(frozen=True, slots=True)
class Held:
    """The layers above are frozen, and hold this."""

    report: bytes


@dataclass(frozen=True, slots=True)
class CutHeld:
    """A packet was supplied: all of the proposed cut may be here."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A view is in force here, and this member is in it."""

    value: Value


@dataclass(frozen=True, slots=True)
class Exited:
    """This member is out of the group."""


@dataclass(frozen=True, slots=True)
class JoinAsked:
    """A process asks to join; by the member at a position that passes it on, or -1: by itself."""

    member: Member
    options: dict[str, Any]
    position: int


@dataclass(frozen=True, slots=True)
class LeaveAsked:
    """A member asks to leave."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class ResetAsked:
    """Go on with at least `minimum` members; as the one at a position asks, or -1: the program here."""

    minimum: int
    position: int = -1


@dataclass(frozen=True, slots=True)
class Suspected:
    """These members are suspected, and no others."""

    incarnations: frozenset[int]


@dataclass(frozen=True, slots=True)
class Died:
    """A member is certainly dead (H13); `vouched` if its lease to this one was not over."""

    incarnation: int
    vouched: bool


@dataclass(frozen=True, slots=True)
class Expelled:
    """Members are too slow for the layers above, or they lie: out at the next view."""

    incarnations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Hangs:
    """A member did not answer for `slow_timeout`."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class Overdue:
    """A change of view takes `slow_timeout`: members that have not reported hang."""


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A link broke: only a new view closes the gap."""


@dataclass(frozen=True, slots=True)
class Reachable:
    """A member can be reached anew: what was under way to it may be lost."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class AskAgain:
    """While the group is blocked: missing members may be there, and in another view."""


@dataclass(frozen=True, slots=True)
class LeasesEnded:
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
    | Hangs
    | Overdue
    | Unsettled
    | Reachable
    | AskAgain
    | LeasesEnded
)
