"""A forked child has no group: its copies of what its parent's groups have go, without a word to other members."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from orcalike.errors import GroupClosed


class Abandons(Protocol):
    """A membership of this process."""

    def _abandon(self) -> None:
        """This is a forked child: nothing is there to wait for, and locks of other threads are never let go."""


memberships: weakref.WeakSet[Abandons] = weakref.WeakSet()
"""Those of this process, until nothing refers to them."""


def _abandon_all() -> None:
    for membership in list(memberships):
        membership._abandon()


os.register_at_fork(after_in_child=_abandon_all)


def closed_in_child(address: str) -> GroupClosed:
    """What each call of a group raises there; its parent's member has that address."""
    where = f"seeds={address!r}" if address else "seeds=, if the parent has listen="
    return GroupClosed(f"a forked child has no group: join in the child with {where}")
