"""The members that are known to have died: the last ones, as a run may go on for ever and start members all the time."""

from __future__ import annotations

from collections.abc import Iterator

DEATHS_MAX = 4096
"""More than a view has members, many times over."""


class Deaths:
    """A set of incarnations; the one that was added first goes if they are too many."""

    def __init__(self) -> None:
        self._in_order: dict[int, None] = {}

    def __contains__(self, incarnation: int) -> bool:
        return incarnation in self._in_order

    def __iter__(self) -> Iterator[int]:
        return iter(self._in_order)

    def add(self, incarnation: int) -> None:
        """This member has died."""
        self._in_order[incarnation] = None
        if len(self._in_order) > DEATHS_MAX:
            del self._in_order[next(iter(self._in_order))]
