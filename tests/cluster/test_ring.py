"""The order in shared memory, between processes that are killed and stopped within a write."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from pathlib import Path

import pytest

from orcalike.transport.drivers.ring_segment import AT_ONCE, JOIN, Entry, Segment, State
from tests.lib.processes import DEADLINE
from tests.lib.ring_programs import compiled, compiler, run, with_mutant

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

GROUP, BOOT = b"g" * 16, b"b" * 16
WRITES = 2_000

EVERY = 61
"""Each 61st machine instruction; the campaign has them all."""


@pytest.mark.parametrize(
    ("mode", "slots"),
    [("kill", 84), ("stop", 84), ("stop", 0)],
    ids=["kill", "stop, overrun", "stop, row taken again"],
)
def test_a_member_can_end_at_any_instruction(tmp_path: Path, mode: str, slots: int) -> None:
    """Of a write, of taking its row, and of a change of view."""
    facts = run(compiled("killstep", tmp_path), mode, EVERY, slots)
    assert facts["code"] == 0, facts["stderr"]
    assert facts["cycles"] > 150
    assert 0 < facts["landed"] < facts["cycles"]
    for each in ("lost", "twice", "differ", "blocked", "late", "fault"):
        assert facts[each] == 0, each
    assert (facts["refused"] > facts["cycles"] / 2) == (mode == "stop")


def test_a_write_after_an_expulsion_is_found(tmp_path: Path) -> None:
    """By the same program, if a writer does not look at the fences that it scans."""
    headers = with_mutant("ring-no-look-at-views", tmp_path)
    facts = run(compiled("killstep", tmp_path, headers=headers), "stop", 4 * EVERY, 3)
    assert facts["late"] > 0


def test_members_are_killed_while_all_write_at_full_speed(tmp_path: Path) -> None:
    facts = run(compiled("killload", tmp_path), 100, 1)
    assert facts["code"] == 0, facts["stderr"]
    assert facts["kills"] == 100
    assert facts["packets"] > 1_000
    for each in ("lost", "differ", "broken"):
        assert facts[each] == 0, each


def test_processes_share_an_order_by_their_descriptors() -> None:
    """Each gets the other's lane, and the joiner the order, as it would over a Unix socket."""
    ours, theirs = socket.socketpair()
    segment = Segment.create(GROUP, BOOT, slots_log=8, lane_size=1 << 14)
    pid = os.fork()
    if pid == 0:
        try:
            join_and_write(theirs)
        finally:
            os._exit(1)
    row, incarnation = segment.offer_row()
    segment.append_view(JOIN, row, incarnation)
    segment.apply()
    state = json.dumps([row, incarnation, *segment.state()]).encode()
    socket.send_fds(ours, [state], [segment.order_fd, segment.lane_fd])
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    assert segment.map_lane(row, incarnation, fds[0])
    applied: list[Entry] = []
    for number in range(WRITES):
        write(segment, b"0 %d" % number, applied)
    while len(applied) < 2 * WRITES:
        segment.sleep(AT_ONCE, DEADLINE)
        applied += segment.apply()
    assert ours.recv(32) == digest(applied)
    for each in (b"0", b"1"):
        own = [entry.data for entry in applied if entry.data.startswith(each)]
        assert own == [each + b" %d" % number for number in range(WRITES)]
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fds[0])
    segment.close()
    ours.close()
    theirs.close()


def join_and_write(sponsor: socket.socket) -> None:
    """The other process: it joins, writes, applies all, and ends with a digest of that."""
    data, (order_fd, lane_fd), _, _ = socket.recv_fds(sponsor, 1 << 16, 2)
    row, incarnation, *state = json.loads(data)
    segment = Segment.attach(order_fd, GROUP, BOOT, row, incarnation, State(*state))
    segment.map_lane(0, 1, lane_fd)
    socket.send_fds(sponsor, [b"x"], [segment.lane_fd])
    applied: list[Entry] = []
    for number in range(WRITES):
        write(segment, b"1 %d" % number, applied)
    while len(applied) < 2 * WRITES:
        segment.sleep(AT_ONCE, DEADLINE)
        applied += segment.apply()
    sponsor.send(digest(applied))
    os._exit(0)


def write(segment: Segment, data: bytes, applied: list[Entry]) -> None:
    """Put one packet into the order, and apply all up to it."""
    while segment.append(data) is None:
        applied += segment.apply()
        segment.wait_for_room(0.001)
    applied += segment.apply()
    segment.wake()


def digest(applied: list[Entry]) -> bytes:
    return hashlib.sha256(repr([(entry.slot, entry.data) for entry in applied]).encode()).digest()
