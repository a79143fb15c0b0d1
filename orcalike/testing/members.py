"""Members of one group in one process, for tests of a program's shared classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import orcalike as orca
from orcalike.group import Group
from orcalike.testing.by_rank import ByRank

P = ParamSpec("P")
T = TypeVar("T")


class Members(ByRank[Group]):
    """So many members of one group in this process, by rank; `close` has all of them leave.

    They communicate by Unix sockets, as members in processes of their own do. Each has a thread,
    so they may be used from this thread in turn, from several threads, or from coroutines.
    """

    def __init__(self, count: int, timeout: float | None = None) -> None:
        super().__init__()
        with self._starting(count) as address:
            for rank in range(count):
                joining = orca.join(
                    listen=None if rank else address,
                    seeds=address if rank else None,
                    timeout=timeout,
                )
                group = joining._enter()
                self._open.callback(group._leave, orderly=True)
                self._members.append(group)

    def share(
        self, cls: Callable[P, T], name: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """An object as each member has it: its replica at each of them, by rank.

        Raises GroupClosed if a member has left, before any other one shares it.
        """
        for rank, group in enumerate(self._members):
            if group._closed:
                raise orca.GroupClosed(
                    f"rank {rank} has left: share {name!r} with each of the others"
                )
        return [group.share(cls, name, *args, **kwargs) for group in self._members]

    def fence(self) -> None:
        """Wait until each member has applied what was ordered before: then replicas are equal.

        Members that have left are passed over.
        """
        for group in self._members:
            if not group._closed:
                group.fence()

    def leave(self, rank: int) -> None:
        """Have a member leave the group, as the end of its program does; the others go on."""
        self._members[rank]._leave(orderly=True)
