"""The members of a new group, in this process or in others, as a sequence by rank."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Self, TypeVar, overload

T = TypeVar("T")


class ByRank(Sequence[T]):
    """What stands for the members of a group; `close`, or the end of a `with` block, ends all of them."""

    def __init__(self) -> None:
        self._members: list[T] = []
        self._open = contextlib.ExitStack()

    @contextlib.contextmanager
    def _starting(self, count: int) -> Iterator[str]:
        """The address for a group of so many members; those that were begun end if one cannot."""
        if count < 1:
            raise ValueError(f"{count} members: a group has one at the least")
        with contextlib.ExitStack() as failed:
            failed.callback(self._open.close)
            folder = tempfile.TemporaryDirectory(prefix="orca", dir="/tmp")  # a short path
            yield f"unix:{self._open.enter_context(folder)}/group"
            failed.pop_all()

    @overload
    def __getitem__(self, rank: int) -> T: ...
    @overload
    def __getitem__(self, rank: slice) -> Sequence[T]: ...
    def __getitem__(self, rank: int | slice) -> T | Sequence[T]:
        """The member of that rank."""
        return self._members[rank]

    def __len__(self) -> int:
        return len(self._members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of them."""
        self._open.close()
