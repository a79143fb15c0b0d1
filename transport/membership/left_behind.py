"""Members that a view went on without, and that may live: they are sought, and notified.

In one lineage only one side goes on. A member that is left out and lives suspects the others when it
does not receive from them for the detection time D, or for as long as the detector is patient with processes
that live, and asks them then; until then it may notice nothing. So the member that leads seeks it
for longer than that.

After a reset both sides may have gone on, so neither waits for the other any more. Those that were
left behind are sought until they are out or dead: by the oldest member, that all of them know.

The clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Protocol

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.membership.messages import ControlMessage, Expelled, Gone
from orcalike.transport.view import Member, View

SOUGHT_MAX = MEMBERS_MAX
"""Members that are sought, the last ones: after a reset they may be for as long as the group lasts."""

SOUGHT = 4
"""Times D for which a member that was left out is sought, beyond the longest silence that the detector excuses."""


if TYPE_CHECKING:

    class Port(Protocol):
        """What this needs of the layer that it works for."""

        def seek(self, members: tuple[Member, ...]) -> None:
            """Make a link to each of these again and again, and to no others that are outside."""

        def tell(self, position: int, message: ControlMessage) -> None:
            """Send a control message to the member at `position`."""

        def contact_with(self, address: str, message: ControlMessage) -> None:
            """Send a control message to the endpoint at an address."""


RESET = "the group was reset"
"""Why a member is out, for people."""


class LeftBehind:
    """The members of earlier views that this member seeks."""

    def __init__(self, port: Port, detection: int, silence_max: int) -> None:
        """`detection` is D, `silence_max` the longest silence that the detector excuses; in ns."""
        self._port = port
        self._sought_for = silence_max + SOUGHT * detection
        self._members: dict[int, tuple[Member, int | None]] = {}
        """By incarnation; with the time until which it is sought, in ns, or None after a reset."""

    @property
    def deadline(self) -> int | None:
        """When to `seek` again, in ns; None if none is sought until a time."""
        times = [until for _, until in self._members.values() if until is not None]
        return min(times, default=None)

    def left_out(self, member: Member, now: int) -> None:
        """This member leads a view without `member`, which may live."""
        self._note(member, now + self._sought_for)

    def reset(self, before: View, view: View, dead: Container[int]) -> None:
        """`view` goes on by a reset without some of `before`."""
        for member in before.members:
            if view.position(member.incarnation) < 0 and member.incarnation not in dead:
                self._note(member, None)

    def _note(self, member: Member, until: int | None) -> None:
        self._members[member.incarnation] = member, until
        if len(self._members) > SOUGHT_MAX:
            del self._members[next(iter(self._members))]

    def seek(self, position: int, now: int) -> None:
        """Seek those whose time is not over; `position` is this member's, -1 outside of the group."""
        self._members = {
            incarnation: (member, until)
            for incarnation, (member, until) in self._members.items()
            if until is None or until > now
        }
        self._port.seek(
            tuple(
                member
                for member, until in self._members.values()
                if position == 0 or (position > 0 and until is not None)
            )
        )

    def forget(self, incarnation: int, position: int, now: int) -> None:
        """An endpoint is out and knows it, or is dead."""
        if self._members.pop(incarnation, None) is not None and position >= 0:
            self.seek(position, now)

    def found(self, address: str, incarnation: int, position: int, now: int) -> bool:
        """Whether the endpoint that a link leads to is one of these; a later one has its address."""
        for member, _ in list(self._members.values()):
            if member.address == address and member.incarnation != incarnation:
                self.forget(member.incarnation, position, now)
        return incarnation in self._members

    def clear(self) -> None:
        """This member is out of the group."""
        self._members.clear()
        self.seek(-1, 0)

    def went_on(self, view: View, before: View, me: int) -> None:
        """The group has gone on with `view`, without this member, which was in `before`."""
        self.say_gone([each for each in before.members if view.position(each.incarnation) < 0], me)
        if view.lineage > before.lineage:
            self.pass_on(view, before, me)

    def pass_on(self, view: View, before: View, me: int) -> None:
        """A group was reset without this member, and may not know others of this one's last view."""
        for position, member in enumerate(before.members):
            if member.incarnation != me and view.position(member.incarnation) < 0:
                self._port.tell(position, Expelled(view, member.incarnation, RESET))

    def say_gone(self, members: Iterable[Member], me: int) -> None:
        """These may count on this member, and must not wait for it: it answers no more."""
        for member in members:
            if member.incarnation != me:
                self._port.contact_with(member.address, Gone())
