"""What RING says in a change of view: where the view ends in the order, and which rows are whose.

It goes along with a `Cut`, as its `order`. It comes from others, and is believed only if it has
the right form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Self

import msgpack
from orcalike.transport.errors import ProtocolError
from orcalike.transport.record import Record
from orcalike.transport.total.flush import Cut
from orcalike.transport.view import View
from orcalike.transport.wire.control import unpack

ROWS = 64
"""Members that an order in shared memory has room for."""

SLOT_MAX = 1 << 62
INCARNATION_MASK = 0x3FFFFF

VIEWS_MAX = 1 << 20
"""Views of one order: fewer than half of all incarnations."""

KEPT, KEPT_BYTES = 8, 65_536
"""So many reports that were read last are kept, of so many bytes at the most."""

Row = tuple[int, int]
"""A row, and its incarnation there."""


class Fence(Record):
    """The end of a view in the order of a lineage; `slot` is -1 at a member that is not attached to it."""

    lineage: int
    slot: int
    rows: dict[int, Row]
    """By the incarnation of the member."""

    def pack(self) -> bytes:
        """As it travels."""
        rows = [[incarnation, *row] for incarnation, row in self.rows.items()]
        packed = msgpack.packb([self.lineage, self.slot, rows])
        assert isinstance(packed, bytes)
        return packed

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises ProtocolError for anything else."""
        match unpack(data, "the end of a view in shared memory", depth=3):
            case [int(lineage), int(slot), [*rows]] if -1 <= slot < SLOT_MAX:
                listed = dict(map(_row, rows))
                if len({row for row, _ in listed.values()}) == len(listed) == len(rows):
                    return cls(lineage, slot, listed)
        raise ProtocolError("the end of a view that RING did not make")

    def rows_after(self, view: View) -> dict[int, Row]:
        """The rows in the view that follows: a member that stays keeps its row. Those beyond the last row get no row."""
        rows = {
            member.incarnation: self.rows[member.incarnation]
            for member in view.members
            if member.incarnation in self.rows
        }
        taken = {row for row, _ in rows.values()}
        free = [row for row in range(ROWS) if row not in taken]
        joiners = [member for member in view.members if member.incarnation not in rows]
        incarnation = incarnation_in(view)
        for member, row in zip(joiners, free, strict=False):
            rows[member.incarnation] = row, incarnation
        return rows


def fence_of(report: bytes) -> Fence:
    """The end of a view, by a report or a cut; raises ProtocolError. As a rule all members report the same bytes."""
    return _read_once(report) if len(report) <= KEPT_BYTES else _read(report)


def slot_of(report: bytes) -> int:
    """Where a view ends in the order, by a report; -1 by one of a member that is not attached."""
    return fence_of(report).slot


def _read(report: bytes) -> Fence:
    return Fence.unpack(Cut.unpack(report).order)


_read_once = lru_cache(KEPT)(_read)


def incarnation_in(view: View) -> int:
    """Of the rows that are taken with a view: later than any before in the same order, as views have growing numbers."""
    return (view.number - 1) % INCARNATION_MASK + 1


def begins_anew(before: View, view: View) -> bool:
    """Whether an order ends with the view before, so that no old incarnation in it ever looks like a later one."""
    return before.number // VIEWS_MAX != view.number // VIEWS_MAX


def first_rows(view: View) -> dict[int, Row]:
    """The rows of an order that a view begins with."""
    incarnation = incarnation_in(view)
    return {
        member.incarnation: (row, incarnation) for row, member in enumerate(view.members[:ROWS])
    }


def _row(entry: object) -> tuple[int, Row]:
    match entry:
        case [int(member), int(row), int(incarnation)]:
            if 0 <= row < ROWS and 0 < incarnation <= INCARNATION_MASK:
                return member, (row, incarnation)
    raise ProtocolError("not a row")
