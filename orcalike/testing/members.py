"""Members of one group in one process, for tests of a program's shared classes."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, overload

import orcalike as orca
from orcalike.group import Group

P = ParamSpec("P")
T = TypeVar("T")


class Members(Sequence[Group]):
    """So many members of one group in this process, by rank.

    They communicate by Unix sockets, as members in processes of their own do. Each has a thread,
    so they may be used from this thread in turn, from several threads, or from coroutines.
    """

    def __init__(self, count: int, timeout: float | None = None) -> None:
        if count < 1:
            raise ValueError(f"{count} members: a group has one at the least")
        self._open = contextlib.ExitStack()
        self._groups: list[Group] = []
        with contextlib.ExitStack() as failed:
            failed.callback(self._open.close)
            folder = tempfile.TemporaryDirectory(prefix="orca", dir="/tmp")  # a short path
            address = f"unix:{self._open.enter_context(folder)}/group"
            for rank in range(count):
                joining = orca.join(
                    listen=None if rank else address,
                    seeds=address if rank else None,
                    timeout=timeout,
                )
                self._groups.append(self._open.enter_context(joining))
            failed.pop_all()

    @overload
    def __getitem__(self, rank: int) -> Group: ...
    @overload
    def __getitem__(self, rank: slice) -> Sequence[Group]: ...
    def __getitem__(self, rank: int | slice) -> Group | Sequence[Group]:
        """The member of that rank."""
        return self._groups[rank]

    def __len__(self) -> int:
        return len(self._groups)

    def share(
        self, cls: Callable[P, T], name: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """An object as each member has it: its replica at each of them, by rank."""
        return [group.share(cls, name, *args, **kwargs) for group in self._groups]

    def fence(self) -> None:
        """Wait until each member has applied what was ordered before: then replicas are equal."""
        for group in self._groups:
            group.fence()

    def leave(self, rank: int) -> None:
        """Have a member leave the group, as the end of its program does; the others go on."""
        self._groups[rank].close()

    def close(self) -> None:
        """Leave the group, with all members."""
        self._open.close()
