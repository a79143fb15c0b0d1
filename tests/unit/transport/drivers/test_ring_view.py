"""An order in shared memory, as one sees it that takes no part."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from orcalike.transport.drivers.mapped_order import boot_id
from orcalike.transport.drivers.ring_segment import JOIN, PREFIX, Segment
from orcalike.transport.drivers.ring_view import look
from orcalike.transport.errors import ProtocolError

GROUP, SLOTS = b"g" * 16, 64


@pytest.fixture
def segment() -> Iterator[Segment]:
    segment = Segment.create(GROUP, boot_id(), slots_log=6, lane_size=4096, name="harbour")
    yield segment
    segment.close()


def test_positions_and_rows(segment: Segment) -> None:
    """Two laps are applied, of a third one some is not."""
    for _ in range(2 * SLOTS + 3):
        segment.append(b"x")
        segment.apply()
    for _ in range(5):
        segment.append(b"x")
    view = look(segment.order_fd)
    assert (view.slots, view.lane_bytes) == (SLOTS, 4096)
    assert (view.next, view.least, view.lap) == (2 * SLOTS + 8, 2 * SLOTS + 3, 2)
    [row] = view.rows
    assert (row.row, row.state, row.process) == (0, "member", os.getpid())
    assert (row.applied, row.lag) == (2 * SLOTS + 3, 5)
    assert (row.sleeps, row.waits_for_room) == (False, False)


def test_a_full_order_is_seen_whole(segment: Segment) -> None:
    while segment.append(b"x") is not None:
        pass
    assert look(segment.order_fd).next == SLOTS


def test_rows_that_join_and_that_were_struck(segment: Segment) -> None:
    row, incarnation = segment.offer_row()
    assert [each.state for each in look(segment.order_fd).rows] == ["member", "joining"]
    segment.append_view(JOIN, row, incarnation)
    segment.apply()
    segment.strike(row, incarnation)
    assert [each.state for each in look(segment.order_fd).rows] == ["member", "struck"]


def test_people_see_the_name_of_the_group(segment: Segment) -> None:
    assert os.readlink(f"/proc/self/fd/{segment.order_fd}") == f"/memfd:{PREFIX}harbour (deleted)"
    strange = Segment.create(GROUP, boot_id(), 6, 4096, name="\0" + "ö" * 300 + "\ud800")
    assert look(strange.order_fd).next == 0
    strange.close()


def test_what_is_no_order_of_this_host_is_refused(segment: Segment) -> None:
    other = Segment.create(GROUP, b"b" * 16, 6, 4096)
    for fd in (segment.lane_fd, other.order_fd):
        with pytest.raises(ProtocolError, match="segment of shared memory cannot be used"):
            look(fd)
    other.close()
    with pytest.raises((OSError, ProtocolError)):
        look(0)


def test_nothing_in_a_damaged_order_is_believed(segment: Segment) -> None:
    rng = random.Random(1)
    size, _ = segment.sizes()
    for _ in range(300):
        segment.overwrite(rng.randrange(64, size - 8), rng.randbytes(8))
        view = look(segment.order_fd)
        assert view.slots == SLOTS
        assert len(view.rows) <= 64
        assert all(each.lag >= 0 for each in view.rows)
