"""The resilience degrees in use, and the smallest of them, R (H1, H2)."""

from __future__ import annotations

import logging
from typing import Any

from orcalike.runtime import classes
from orcalike.transport.degree import ALL, AVAILABLE, NUMBER_MAX, least_of

_log = logging.getLogger("orcalike")


class Degrees:
    """What the degrees of the objects, and of the group, come to at one member."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self.least = 0
        """R of H1, as far as the order has gone here."""
        self._said_single = False

    def count(self) -> None:
        """R may have changed: the smallest degree above 0 of whatever can be written (H2)."""
        if self._runtime.single:
            return
        replicas = self._runtime.table.named()
        least = least_of((self._runtime.group_degree, *(replica.least for replica in replicas)))
        least |= AVAILABLE if self._runtime.available else 0
        if least != self.least:
            self.least = least
            self._runtime.set_least(least)

    def of_change(self, least: int) -> int:
        """The degree with which an object with these operations comes or goes.

        All hold it where R may change with it; whether it does is known only at its place in the
        order. -1 stands for the group's degree, which covers the object where it is no larger.
        """
        covered = least == 0 or 1 <= self._runtime.group_degree <= least
        return -1 if covered else ALL

    def largest(self) -> int:
        """The largest number of members that a degree in use asks for beside the caller."""
        infos = [replica.info for replica in self._runtime.replicas[1:] if replica is not None]
        found = [self._runtime.effective_degree]
        found += [op.degree for info in infos if info is not None for op in info.operations]
        return max((degree for degree in found if degree <= NUMBER_MAX), default=0)

    def lower(self) -> None:
        """From here on a degree is MIN(r, members - 1), as `degree="available"` has it."""
        self._runtime.available = True
        self.count()

    def note_single(self, info: classes.ClassInfo | None) -> None:
        """Say once that a degree counts for nothing here, as no other process can hold a copy (H2)."""
        if self._runtime.single and not self._said_single and (info is None or info.least):
            self._said_single = True
            _log.warning(
                "%s asks for a resilience degree, which is 0 in a group of one that no process can join: "
                "give join() listen= or seeds=, or start the program with `orcalike run`",
                "the group" if info is None else info.name,
            )
