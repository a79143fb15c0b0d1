"""Semaphores as `multiprocessing`'s managers have them: a permit is no process's own."""

from __future__ import annotations

from orcalike import objects
from orcalike.objects import language as orca


@orca.shared
class Permits(objects.Semaphore):
    """So many permits. Any process releases them, also those that another one has acquired."""

    def member_left(self, member: orca.Member) -> None:
        """What it acquired stays acquired; it cannot abandon an attempt any more."""
        self._released.pop(member.incarnation, None)
        self._acquired.pop(member.incarnation, None)
        self._held.pop(member.incarnation, None)


@orca.shared
class BoundedPermits(Permits, objects.BoundedSemaphore):
    """Permits of which no more can be released than were acquired."""
