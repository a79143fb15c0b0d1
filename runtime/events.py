"""What is notified of what happens to a group."""

from __future__ import annotations

from typing import Protocol

from orcalike.transport.view import Member, View


class Events(Protocol):
    """Is notified of what happens to the group; no method of it may block or invoke."""

    def viewed(self, view: View) -> None:
        """A view was installed."""

    def suspected(self, member: Member, why: str) -> None:
        """A member of the view is taken for dead, until it is heard again."""

    def blocked_by(self, missing: tuple[Member, ...], rule: str) -> None:
        """No primary view can be formed without these members, by this rule."""

    def reset_failed(self, why: str) -> None:
        """A reset was asked for, and cannot be done."""

    def exited(self, why: str) -> None:
        """This member is out of the group."""

    def join_failed(self, why: str) -> None:
        """The endpoint that was asked cannot be reached."""

    def join_denied(self, why: str) -> None:
        """The group refused this member."""

    def system_error(self, why: str) -> None:
        """Something arrived that cannot be believed, or orcalike itself failed."""

    def ended(self, ranks: set[int]) -> None:
        """These ranks of the program have ended."""

    def failed(self, error: Exception) -> None:
        """This replica stopped serving."""

    def why_stuck(self) -> str | None:
        """Why the group cannot go on; None if it can."""

    def lacks_members(self, needed: int) -> None:
        """A call waits until there are so many members with replicas; 0: none does any more."""
