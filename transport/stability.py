"""Stability: which messages are held, or were seen, by how many members (Horus 4.4: H67, H68)."""

from __future__ import annotations

from orcalike.transport.record import Frozen
from orcalike.transport.view import Member


class Stability(Frozen):
    """The stability matrix as one member knows it; what it shows is true, and may be behind."""

    members: tuple[Member, ...]
    """The members with replicas, by rank: the rows and the columns."""
    matrix: tuple[tuple[int, ...], ...]
    """Entry [i][j]: how many messages of member i member j has seen, as far as is known here."""

    def __init__(self, members: tuple[Member, ...], matrix: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(members, matrix)

    def level(self, k: int) -> tuple[int, ...]:
        """How many messages of each member are k-stable: seen by k members at the least.

        All zeros where there are fewer than k members. Raises ValueError for a k below 1.
        """
        if k < 1:
            raise ValueError(f"k={k}: a message is stable when 1 member or more has seen it")
        if k > len(self.members):
            return (0,) * len(self.members)
        return tuple(sorted(row, reverse=True)[k - 1] for row in self.matrix)
