"""The members that a group waits for: it is blocked without them, or has too few for a degree."""

from __future__ import annotations

import logging
from collections.abc import Callable

from orcalike.transport.view import Member, View
from orcalike.transport.wording import listed

_log = logging.getLogger("orcalike")


class Shortage:
    """What one group waits for; `find_too_few()` says why writes of a degree in use wait, or None."""

    def __init__(self, group: str, find_too_few: Callable[[], str | None]) -> None:
        self.blocked: tuple[tuple[Member, ...], str] | None = None
        """The missing members, and the rule by which no view can be formed without them."""
        self._group = group
        self._find_too_few = find_too_few
        self._too_few: str | None = None
        self._lost: dict[int | None, Member] = {}
        """Members that are in the group no longer, by rank; a rank that is taken again is left out."""
        self._suspected: set[int] = set()
        """The incarnations in the view that were taken for dead."""
        self._had_enough = False
        """Members for every degree, at some time: a group that begins is no group that lacks some."""
        self._warned = False
        """That members are too few has been logged."""

    @property
    def waits_for(self) -> tuple[tuple[Member, ...], str] | None:
        """`blocked`, or the members that were lost, if the view has too few for a degree in use."""
        too_few = self.look_for_too_few()
        if self.blocked is not None or too_few is None:
            return self.blocked
        return tuple(self._lost.values()), too_few

    def describe_blocked(self) -> str:
        """Which members a blocked group waits for, and why."""
        assert self.blocked is not None
        missing, rule = self.blocked
        if not missing:
            return f"each member that is missing has ended ({rule}); group.reset() goes on without them"
        return f"it waits for {listed(missing)} ({rule})"

    def look_for_too_few(self) -> str | None:
        """Why writes of a degree wait now; the log says if members are enough again."""
        before, self._too_few = self._too_few, self._find_too_few()
        if self._too_few is None and before is not None and self._warned:
            self._warned = False
            _log.warning("the group %r has members enough again for every degree", self._group)
        self._had_enough = self._had_enough or self._too_few is None
        return self._too_few

    def warn_of_too_few(self) -> None:
        """Say once that writes wait, or would. Members that leave, as at a program's end, are no cause."""
        if self._too_few is not None and self._had_enough and not self._warned:
            self._warned = True
            _log.warning(
                "the group %r has too few members: %s; such writes wait for %s, or for "
                "group.reset()",
                self._group,
                self._too_few,
                listed(self._lost.values()) or "others",
            )

    def suspect(self, member: Member) -> None:
        """A member of the view is taken for dead."""
        self._suspected.add(member.incarnation)

    def note_view(self, before: View | None, view: View) -> bool:
        """A view follows `before`; whether a member is gone that did not leave, as far as is known."""
        for member in before.members if before is not None else ():
            self._lost[member.rank] = member
        for member in view.members:
            self._lost.pop(member.rank, None)
        lost = self._suspected - {member.incarnation for member in view.members}
        self._suspected -= lost
        return bool(lost)
