"""Connections that have not greeted, and what is logged of bad ones."""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers import half_open, handed_over, listener, sockets
from orcalike.transport.drivers.complaints import EVERY, Complaints
from orcalike.transport.drivers.half_open import HalfOpen
from orcalike.transport.drivers.handshake import MAGIC
from orcalike.transport.drivers.key_ring import key_of
from orcalike.transport.drivers.noise import EMPTY_SIZE
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.errors import OrcalikeError
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from tests.lib.descriptors import without_descriptors
from tests.lib.end import End
from tests.lib.recording_application import RecordingApplication
from tests.protocol.test_bad_frames import control, hello


def test_of_a_source_that_has_too_many_the_oldest_goes() -> None:
    waiting = HalfOpen()
    for number in range(half_open.OF_ONE_SOURCE):
        assert waiting.crowded("one") is None
        waiting.add(number, "one", number)
    assert waiting.crowded("one") == 0
    assert waiting.crowded("other") is None
    waiting.remove(0)
    assert waiting.crowded("one") is None


def test_of_all_sources_the_one_with_the_most_gives_way() -> None:
    waiting = HalfOpen()
    for number in range(half_open.IN_ALL):
        source = "greedy" if number % 10 == 3 else f"source {number}"
        assert waiting.crowded(source) is None
        waiting.add(number, source, number)
    assert waiting.crowded("late") == 3


def test_connections_that_have_not_greeted_in_time() -> None:
    waiting = HalfOpen()
    assert waiting.deadline() is None
    for number in range(3):
        waiting.add(number, "one", number)
    assert waiting.deadline() == half_open.GREET_WITHIN
    assert waiting.overdue(half_open.GREET_WITHIN - 1) == []
    assert waiting.overdue(half_open.GREET_WITHIN + 1) == [0, 1]
    waiting.remove(0)
    waiting.remove(0)
    assert waiting.deadline() == half_open.GREET_WITHIN + 1


def test_bad_connections_are_logged_once_a_second_with_a_count() -> None:
    lines: list[str] = []
    complaints = Complaints(lambda level, text: lines.append(text))
    for number in range(1000):
        complaints.say(logging.WARNING, f"bad {number}", EVERY + number)
    assert lines == ["bad 0"]
    assert complaints.deadline() == 2 * EVERY
    complaints.count(2 * EVERY)
    assert lines == ["bad 0", "999 more connections refused since"]
    assert complaints.deadline() is None


def test_a_line_that_a_log_leaves_out_is_not_counted_in_one_that_it_shows() -> None:
    """Programs show warnings, and no line of the level INFO."""
    shown: list[str] = []
    complaints = Complaints(
        lambda level, text: shown.append(text) if level >= logging.WARNING else None
    )
    for number in range(5):
        complaints.say(logging.INFO, f"usual {number}", EVERY + number)
    assert complaints.deadline() == 2 * EVERY
    complaints.say(logging.WARNING, "bad", EVERY + 5)
    assert shown == ["bad"]
    complaints.say(logging.WARNING, "bad as well", EVERY + 6)
    complaints.count(2 * EVERY)
    assert complaints.deadline() == 2 * EVERY + 5
    complaints.count(2 * EVERY + 5)
    assert shown == ["bad", "1 more connection refused since"]
    assert complaints.deadline() is None


def test_connections_for_a_group_that_is_not_here_are_counted_too() -> None:
    lines: list[str] = []
    listening, address = sockets.listen("tcp:127.0.0.1:0")
    shared = listener.Listener(lambda level, text: lines.append(text))
    shared.listen(listening, address)
    pump, tries = Pump(), 40
    pump.listen_by(shared, "group")
    for _ in range(tries):
        with sockets.connect(address) as sock:
            sock.setblocking(True)
            sock.sendall(hello("l\N{LATIN SMALL LETTER O WITH DIAERESIS}we", "", 77))
            poller = select.poll()
            poller.register(sock, select.POLLIN)
            while not poller.poll(1):
                pump.handle()
    assert lines[0] == "a connection was refused: the group l\\xf6we is not here"
    assert len(lines) < tries
    pump.close_all()
    shared.close()


def test_connections_for_a_group_whose_loop_is_blocked_are_bounded() -> None:
    """Further ones are closed, and the others are taken when it goes on."""
    lines: list[str] = []
    listening, address = sockets.listen("tcp:127.0.0.1:0")
    shared = listener.Listener(lambda level, text: lines.append(text))
    shared.listen(listening, address)
    blocked, other, taken = Pump(), Pump(), list[str]()
    blocked.stack_for = lambda group, address: taken.append(group)
    blocked.listen_by(shared, "blocked")
    other.listen_by(shared, "other")
    waiting = list[socket.socket]()
    while not lines:
        sock = sockets.connect(address)
        sock.setblocking(True)
        sock.sendall(hello("blocked", "", len(waiting)))
        waiting.append(sock)
        other.handle()
        assert len(waiting) < 2 * handed_over.HANDED_OVER_MAX
    assert lines == ["a connection was refused: too many wait for the group blocked"]
    assert taken == []
    for _ in range(5):
        blocked.handle()
    assert len(taken) >= handed_over.HANDED_OVER_MAX
    for pump in (blocked, other):
        pump.close_all()
    for sock in waiting:
        sock.close()
    shared.close()


Ends = Callable[..., End]


@pytest.fixture
def make_end() -> Iterator[Ends]:
    """Makes members, which are closed with the test, however that ends."""
    made: list[End] = []

    def make(address: str, key: bytes | None = None, *, joins: bool = True, rank: int = 0) -> End:
        made.append(End(address, key, joins=joins, rank=rank))
        return made[-1]

    yield make
    for end in made:
        end.pump.close_all()
    assert [end.pump.failure for end in made] == [None] * len(made)


@pytest.fixture(params=["unix", "tcp"])
def end(make_end: Ends, tmp_path: Path, request: pytest.FixtureRequest) -> End:
    return make_end(f"unix:{tmp_path}/end" if request.param == "unix" else "tcp:127.0.0.1:0")


def test_a_silent_connection_is_closed_in_time(end: End) -> None:
    silent = end.connect()
    end.pump.handle()
    assert not end.is_closed(silent)
    end.until(lambda: end.is_closed(silent))
    assert any("no greeting came in time" in line for line in end.logged)
    silent.close()


def test_silent_connections_keep_no_process_out(end: End) -> None:
    """However many there are: the oldest goes, and a process that greets is heard."""
    silent = [end.connect() for _ in range(3 * half_open.OF_ONE_SOURCE)]
    end.pump.handle()
    late = end.connect()
    late.sendall(hello("group", "", 77))
    end.until(lambda: end.has_answered(late))
    assert len([sock for sock in silent if not end.is_closed(sock)]) <= half_open.OF_ONE_SOURCE
    for sock in (*silent, late):
        sock.close()


def test_one_that_never_reads_is_not_answered_for_ever(end: End) -> None:
    """Each question is answered: answers that are not read yet have a bound."""
    # The answer says what is asked for, and what the group has.
    end.stack.config.options["note"] = "x" * 256
    greedy = end.connect()
    greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the kernel holds little
    greedy.sendall(hello("group", "unix:/nowhere/at/all", 77))
    end.until(lambda: end.has_answered(greedy))
    options = {"note": "y" * 256}
    question = whole = control("JOIN", ["unix:/nowhere/at/all", 77, 0, False], options)
    closed = False
    for _ in range(200_000):
        try:
            question = question[greedy.send(question) :] or whole
        except BlockingIOError:
            end.pump.handle()
        except ConnectionError:
            closed = True
            break
    greedy.close()
    assert closed
    assert any("does not read" in line for line in end.logged)


def sleeps_soon(end: End) -> bool:
    """Whether a few inputs later nothing keeps its pump awake."""
    poller = select.poll()  # takes any number of a descriptor
    poller.register(end.pump.fileno(), select.POLLIN)
    for _ in range(50):
        if not poller.poll(0):
            return True
        end.pump.handle()
    return False


def test_without_descriptors_the_pump_still_sleeps(end: End) -> None:
    """What cannot be accepted is closed, or makes room: it does not keep the pump awake."""
    waiting = [end.connect() for _ in range(8)]
    with without_descriptors():
        end.until(lambda: any("cannot be accepted" in line for line in end.logged))
        end.until(lambda: [end.is_closed(sock) for sock in waiting].count(True) >= 7)
        assert sleeps_soon(end)
    for sock in waiting:
        sock.close()


def test_a_link_is_made_though_no_descriptor_is_left_by_then(
    make_end: Ends, tmp_path: Path
) -> None:
    other = make_end(f"unix:{tmp_path}/other")
    end = make_end(f"unix:{tmp_path}/end", joins=False, rank=1)
    end.pump.call(end.stack.join, other.address)
    with without_descriptors():
        end.pump.handle()  # it sees that the link stands
    assert end.pump.failure is None

    def is_in() -> object:
        other.pump.handle()
        return end.top.installed

    end.until(is_in)


class Grasping:
    """In the place of `os`: another thread takes each descriptor that becomes free, as long as it `holds` them."""

    def __init__(self) -> None:
        self.holds = True
        self.taken: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def open(self, path: str, flags: int) -> int:
        if self.holds:
            self.taken.append(os.open(path, flags))
            raise OSError(errno.EMFILE, "Too many open files")
        return os.open(path, flags)


def test_a_spare_descriptor_that_another_thread_has_taken_is_had_later(
    end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile connections wait, and the pump sleeps."""
    grasping = Grasping()
    monkeypatch.setattr(listener, "os", grasping)
    waiting = [end.connect() for _ in range(3)]
    with without_descriptors():
        end.until(lambda: any(end.is_closed(sock) for sock in waiting))
        assert sleeps_soon(end)
    grasping.holds = False
    for taken in grasping.taken:
        os.close(taken)
    late = end.connect()
    late.sendall(hello("group", "", 77))
    end.until(lambda: end.has_answered(late))
    for sock in (*waiting, late):
        sock.close()


def watch_without_end(pump: Pump) -> None:
    """Takes all the room for connections, with one descriptor at a time."""
    while True:
        fd = os.eventfd(0)
        try:
            pump.watch_fd(fd, lambda: None)
        finally:
            os.close(fd)


def test_a_connection_that_there_is_no_room_for_has_failed(make_end: Ends, tmp_path: Path) -> None:
    other = make_end(f"unix:{tmp_path}/other")
    end = make_end(f"unix:{tmp_path}/end", joins=False)
    with pytest.raises(OrcalikeError, match="connections"):
        watch_without_end(end.pump)
    end.pump.call(end.stack.join, other.address)
    assert end.pump.failure is None
    assert "more than 4096 connections" in str(end.top.failed + end.top.problems)


KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (hello("group", "", 77), "it speaks without the key"),
        (MAGIC + key_of(bytes(32)).id + bytes(EMPTY_SIZE), "it has another key than this group"),
        (MAGIC + key_of(KEY).id + bytes(EMPTY_SIZE), "it has not proved the key"),
        (MAGIC + key_of(KEY).id + bytes(EMPTY_SIZE - 1), "no greeting came in time"),
        (b"", "no greeting came in time"),
    ],
)
def test_without_the_key_no_frame_is_read(make_end: Ends, said: bytes, why: str) -> None:
    end = make_end("tcp:127.0.0.1:0", KEY)
    non_member = end.connect()
    non_member.sendall(said)
    end.until(lambda: end.is_closed(non_member))
    end.until(lambda: any(why in line for line in end.logged))
    assert end.stack.dump()["COM"]["peers"] == {}
    non_member.close()


@pytest.mark.parametrize("keys", [(KEY, KEY), (KEY, bytes(32)), (KEY, None), (None, KEY)])
def test_only_a_process_with_the_key_gets_in(
    make_end: Ends, keys: tuple[bytes | None, bytes | None]
) -> None:
    first, second = (make_end("tcp:127.0.0.1:0", key) for key in keys)
    joiner = Stack(
        parse_stack("TOTAL:MBRSHIP:COM:tcp"),
        StackConfig("group"),
        Member(second.address, 99, 1),
        2,
    )
    joiner.above = top = RecordingApplication(joiner)
    second.pump.replace(second.stack, joiner)
    second.pump.stack_for = lambda group, address: joiner
    second.pump.call(joiner.join, first.address)

    def over() -> bool:
        first.pump.handle()
        return top.installed is not None or bool(top.failed)

    second.until(over)
    if keys[0] == keys[1]:
        assert top.installed is not None
        assert len(top.installed.members) == 2
    else:
        assert top.installed is None
        assert top.failed
        assert first.top.installed is not None
        assert len(first.top.installed.members) == 1
