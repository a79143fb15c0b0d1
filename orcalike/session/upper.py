"""What stands on top of a member's stack: a group's objects, or the messages of one."""

from __future__ import annotations

from typing import Protocol

from orcalike.transport.stack import Stack


class Upper(Protocol):
    """That layer, as a session sees it: a `runtime.dispatch.Runtime`, or a `message_inbox.Inbox`."""

    notice: Exception | None
    """What the next call raises, once."""

    @property
    def group_degree(self) -> int:
        """The degree of what has none of its own."""

    @property
    def available(self) -> bool:
        """Whether a degree counts as far as the view has members for it."""

    def fail_all(self, error: Exception) -> None:
        """From here on every call raises this."""

    def rebind(self, stack: Stack) -> None:
        """The member joins again, on that stack; after `fail_all`."""

    def too_few(self) -> str | None:
        """Why writes wait for more members; None if none has to."""

    def load(self) -> tuple[int, int]:
        """How many objects have a name, and how many calls wait here for their guards."""

    def say_too_few(self, degree: int) -> str:
        """What a degree takes, and what the view has."""
