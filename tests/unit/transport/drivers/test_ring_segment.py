"""Segments of shared memory, and members of an order in one process, each with mappings of its own."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcalike.transport.drivers.ring_segment import (
    AT_ONCE,
    EXPEL,
    JOIN,
    LAZY,
    LEAVE,
    Segment,
)
from orcalike.transport.errors import Expelled, ProtocolError
from tests.lib.processes import DEADLINE, until

GROUP, BOOT = b"g" * 16, b"b" * 16
LANE = 4096


@pytest.fixture
def first() -> Iterator[Segment]:
    segment = Segment.create(GROUP, BOOT, slots_log=6, lane_size=LANE)
    yield segment
    segment.close()


def joined(*members: Segment) -> Segment:
    """Another member, which the first one lets in; all have mapped its lane, and it theirs."""
    sponsor = members[0]
    row, incarnation = sponsor.offer_row()
    assert sponsor.append_view(JOIN, row, incarnation) is not None
    sponsor.apply()
    segment = Segment.attach(sponsor.order_fd, GROUP, BOOT, row, incarnation, sponsor.state())
    for member in members:
        assert member.map_lane(row, incarnation, segment.lane_fd)
        assert segment.map_lane(member.row, member.incarnation, member.lane_fd)
    return segment


def data_of(segment: Segment) -> list[bytes]:
    return [entry.data for entry in segment.apply() if not entry.kind]


def test_packets_are_applied_in_one_order_by_all(first: Segment) -> None:
    second = joined(first)
    slots = [first.append(b"a"), second.append(b"b"), first.append(b"c" * 200, count=7)]
    assert slots == [1, 2, 3]
    assert first.has_news()
    entries = second.apply()
    assert [(entry.slot, entry.row, entry.data) for entry in entries] == [
        (1, 0, b"a"),
        (2, 1, b"b"),
        (3, 0, b"c" * 200),
    ]
    assert entries[2].messages == 7
    assert first.apply() == entries
    assert not first.has_news()


def test_a_joiner_applies_what_comes_after_its_view(first: Segment) -> None:
    first.append(b"before")
    second = joined(first)
    first.append(b"after")
    assert data_of(second) == [b"after"]


def test_a_full_ring_takes_no_more_until_the_slowest_has_applied(first: Segment) -> None:
    second = joined(first)
    while first.append(b"x" * 8) is not None:
        first.apply()
    assert first.status()["fulls"]
    before = first.status()["least"]
    assert second.apply()
    assert first.append(b"y") is not None
    assert first.status()["least"] != before


def test_a_full_lane_takes_no_more_until_it_is_applied(first: Segment) -> None:
    second = joined(first)
    sent = 0
    while first.append(bytes([sent]) * first.packet_max) is not None:
        sent += 1
        first.apply()
    assert sent == 4
    assert data_of(second) == [bytes([i]) * first.packet_max for i in range(4)]
    assert first.append(b"again") is not None
    with pytest.raises(ProtocolError, match="quarter of a lane"):
        first.append(bytes(first.packet_max + 1))


def test_a_sleeper_is_woken_by_a_write(first: Segment) -> None:
    second = joined(first)
    woken = threading.Event()

    def sleep() -> None:
        second.sleep(AT_ONCE, DEADLINE)
        woken.set()

    thread = threading.Thread(target=sleep)
    thread.start()
    until(lambda: any(row["wants to be woken"] for row in rows_of(first)))
    first.append(b"news")
    first.wake()
    thread.join(DEADLINE)
    assert woken.is_set()
    assert data_of(second) == [b"news"]


def rows_of(segment: Segment) -> list[dict[str, object]]:
    rows = segment.status()["rows"]
    assert isinstance(rows, list)
    return rows


def test_a_member_without_news_wakes_none_that_waits_for_room(first: Segment) -> None:
    second = joined(first)
    third = joined(first, second)  # it applies nothing
    while first.append(b"x") is not None:
        first.apply()
        second.apply()
    thread = threading.Thread(target=first.wait_for_room, args=(DEADLINE,))
    thread.start()
    until(lambda: rows_of(second)[0]["waits for room"])
    second.apply()
    assert rows_of(second)[0]["waits for room"]
    third.apply()
    assert not rows_of(second)[0]["waits for room"]
    thread.join(DEADLINE)
    assert not thread.is_alive()


def test_a_lazy_sleeper_is_woken_at_half_a_ring(first: Segment) -> None:
    second = joined(first)
    thread = threading.Thread(target=second.sleep, args=(LAZY, DEADLINE))
    thread.start()
    for _ in range(40):
        assert first.append(b"x") is not None
        first.apply()
    thread.join(DEADLINE)
    assert not thread.is_alive()


def test_an_eventfd_is_written_once_until_it_is_armed_again(first: Segment) -> None:
    second = joined(first)
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    first.set_eventfd(second.row, fd)
    assert second.use_eventfd()
    assert not second.arm_eventfd()
    for _ in range(3):
        first.append(b"x")
        first.wake()
    assert os.eventfd_read(fd) == 1
    assert second.arm_eventfd()  # there is news
    os.close(fd)


def test_an_eventfd_is_not_used_before_all_have_applied_the_view(first: Segment) -> None:
    second = joined(first)
    third = joined(first, second)
    assert not third.use_eventfd()
    second.apply()
    assert third.use_eventfd()


def test_an_expelled_member_can_neither_write_nor_read(first: Segment) -> None:
    second = joined(first)
    assert first.strike(second.row, second.incarnation)
    assert not first.strike(second.row, second.incarnation)
    first.append_view(EXPEL, second.row, second.incarnation)
    with pytest.raises(Expelled):
        second.append(b"late")
    assert second.is_out
    with pytest.raises(Expelled):
        second.apply()
    assert data_of(first) == []


def test_a_row_is_used_again_when_all_have_applied_the_leaving(first: Segment) -> None:
    second = joined(first)
    third = joined(first, second)
    third.apply()
    third.append_view(LEAVE, third.row, third.incarnation)
    third.apply()
    first.apply()
    assert first.offer_row()[0] == 3  # the second may still read its lane
    second.apply()
    assert first.offer_row() == (third.row, 2)


def test_marks_tell_members_that_differ(first: Segment) -> None:
    second = joined(first)
    assert first.mark(1024, 7)
    assert second.mark(1024, 7)
    assert not second.mark(1024, 8)
    assert first.mark(2048, 9)


def test_what_is_not_a_segment_of_this_group_is_refused(first: Segment) -> None:
    state = first.state()
    plain = os.memfd_create("plain")
    for fd, group, boot, text in (
        (first.order_fd, b"h" * 16, BOOT, "another group"),
        (first.order_fd, GROUP, b"c" * 16, "another boot"),
        (first.lane_fd, GROUP, BOOT, "sizes|not one"),
        (plain, GROUP, BOOT, "not sealed"),
    ):
        with pytest.raises(ProtocolError, match=text):
            Segment.attach(fd, group, boot, 1, 1, state)
    os.close(plain)
    with pytest.raises(ProtocolError, match="no longer offered"):
        Segment.attach(first.order_fd, GROUP, BOOT, 1, 1, state)


@pytest.mark.parametrize("word", range(5), ids=["magic", "version", "sizes", "size", "group"])
def test_a_damaged_header_is_refused(first: Segment, word: int) -> None:
    row, incarnation = first.offer_row()
    first.overwrite(8 * word, b"\xff" * 8)
    with pytest.raises(ProtocolError, match="cannot be used"):
        Segment.attach(first.order_fd, GROUP, BOOT, row, incarnation, first.state())


def test_segments_are_sealed_and_lanes_are_the_owners_alone(first: Segment) -> None:
    for fd in (first.order_fd, first.lane_fd):
        with pytest.raises(OSError, match="not permitted"):
            os.ftruncate(fd, 1)
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SEAL
    with pytest.raises(PermissionError):
        mmap.mmap(first.lane_fd, LANE)
    mmap.mmap(first.lane_fd, LANE, prot=mmap.PROT_READ).close()


def test_a_forked_process_has_no_part_in_it(first: Segment) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            first.append(b"x")
        except RuntimeError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_forked_process_does_not_get_the_memory(first: Segment) -> None:
    inodes = {str(os.fstat(fd).st_ino) for fd in (first.order_fd, first.lane_fd)}

    def mapped() -> list[str]:
        """Its two parts, and none of members that no test holds any more."""
        found = map(str.split, Path("/proc/self/maps").read_text().splitlines())
        return [at for at, _, _, _, inode, *_ in found if inode in inodes]

    before = mapped()
    assert len(before) >= 2
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, Path("/proc/self/maps").read_bytes().count(b"orcalike-").to_bytes(1, "big"))
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 1) == b"\0"
    assert mapped() == before
    os.close(read)
    os.close(write)


def test_an_offer_is_taken_back_by_an_expulsion(first: Segment) -> None:
    row, incarnation = first.offer_row()
    assert first.offer_row()[0] != row
    first.strike(row, incarnation)
    first.append_view(EXPEL, row, incarnation)
    first.append(b"x")
    first.apply()
    first.apply()
    assert first.offer_row() == (row, incarnation + 1)


def test_a_closed_segment_says_so(first: Segment) -> None:
    first.close()
    with pytest.raises(ValueError, match="closed"):
        first.append(b"x")


def test_damage_is_named(first: Segment) -> None:
    second = joined(first)
    first.append(b"x" * 64)
    first.overwrite(0, b"\xff" * 4, in_lane=True)  # its size
    with pytest.raises(ProtocolError, match=r"slot 1 .* ends outside of its lane"):
        second.apply()


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_named_or_has_no_effect(first: Segment, seed: int) -> None:
    rng = random.Random(seed)
    second = joined(first)
    order, _ = first.sizes()
    named = 0
    for _ in range(200):
        if rng.random() < 0.3:
            in_lane = rng.random() < 0.3
            offset = 64 + 8 * rng.randrange((LANE if in_lane else order - 64) // 8 - 8)
            first.overwrite(offset, rng.randbytes(rng.choice((1, 4, 8))), in_lane=in_lane)
        try:
            member = rng.choice((first, second))
            rng.choice((lambda m: m.append(rng.randbytes(rng.randrange(500))), Segment.apply))(
                member
            )
            member.wake()
        except (Expelled, ProtocolError) as error:
            assert "order" in str(error)  # noqa: PT017 any of some hundred damages
            named += 1
    assert second.status()["slots"] == 64
    assert first.status()["lane size"] == LANE
    assert named < 200
