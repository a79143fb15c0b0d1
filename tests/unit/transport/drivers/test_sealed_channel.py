"""Members over TCP under a key, and what lies between them: nothing that it does is believed (S5, S6)."""

from __future__ import annotations

import contextlib
import gc
import secrets
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from cryptography.exceptions import InvalidTag

from orcalike.transport.drivers.handshake import ANSWER_SIZE, OPENING_SIZE, Handshake
from orcalike.transport.drivers.record_cipher import RecordCipher
from orcalike.transport.wire.message import Message
from tests.lib.end import End
from tests.lib.keyed import (
    HEAD,
    LIBRARIES,
    Sealer,
    Socket,
    connect_sealed,
    ring_of,
    short_records_by,
)
from tests.lib.processes import DEADLINE
from tests.lib.sealed_group import SealedGroup
from tests.protocol.test_bad_frames import hello

KEY = bytes(range(32))


@pytest.fixture(params=LIBRARIES, autouse=True)
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """What the member seals short records by; the other end does it by `cryptography`."""
    with short_records_by(request.param) as lack:
        if lack:
            pytest.skip(lack)
        yield request.param


@pytest.fixture
def end(library: str) -> Iterator[End]:
    end = End("tcp:127.0.0.1:0", KEY)
    yield end
    end.pump.close_all()
    assert end.pump.failure is None


@pytest.fixture
def sock(end: End) -> Iterator[socket.socket]:
    with contextlib.closing(end.connect()) as sock:
        yield sock


def sealed(end: End, sock: Socket) -> Sealer:
    """Make the handshake with it, which a thread of the test waits for."""
    found: list[Sealer] = []
    thread = threading.Thread(target=lambda: found.append(connect_sealed(sock, ring_of(KEY))))
    thread.start()
    end.until(lambda: not thread.is_alive())
    thread.join()
    return found[0]


HELLO = hello("group", "", 77)


def test_a_greeting_in_records_is_one(end: End, sock: socket.socket) -> None:
    """However the bytes are cut: into records, and on the way."""
    sealer = sealed(end, sock)
    for byte in b"".join(sealer.seal(HELLO[at : at + 7]) for at in range(0, len(HELLO), 7)):
        sock.send(bytes([byte]))
        end.pump.handle()
    end.until(lambda: end.peers)
    sock.settimeout(DEADLINE)
    head = sock.recv(HEAD, socket.MSG_WAITALL)
    answer = head + sock.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL)
    assert b"group" not in answer
    assert b"group" in sealer.open(answer)


def ciphers() -> list[RecordCipher]:
    """Those of all channels that there are, by a look at all objects: C alone has them."""
    return [found for found in gc.get_objects() if isinstance(found, RecordCipher)]


def test_short_records_take_the_quick_way_where_there_is_one(
    end: End, sock: socket.socket, library: str
) -> None:
    sealer = sealed(end, sock)
    sock.sendall(sealer.seal(HELLO))
    end.until(lambda: end.peers)
    sends, comes = sorted(cipher.quick for cipher in ciphers())
    assert (sends > 0, comes > 0) == (library == "libsodium",) * 2


def test_the_keys_of_a_connection_end_with_it(end: End) -> None:
    with contextlib.closing(end.connect()) as sock:
        sealer = sealed(end, sock)
        sock.sendall(sealer.seal(HELLO))
        end.until(lambda: end.peers)
        assert len(ciphers()) == 2
    end.until(lambda: not end.peers)
    assert ciphers() == []


def test_members_hand_over_messages_of_all_sizes(library: str) -> None:
    """In records of a part of one, of one, and of several, as both libraries take them."""
    group = SealedGroup()
    try:
        for size in (1, 2900, 3000, 3100, 65_000, 65_536, 70_000, 1 << 20):
            group.cast(secrets.token_bytes(size))
        many = [secrets.token_bytes(size) for size in (*range(1, 3000, 41), 80_000, *range(9))]
        before = len(group.attacked.top.bodies)

        def cast_all(now: int) -> None:
            for body in many:
                group.other.stack.cast(Message(body), now)

        group.other.pump.call(cast_all)
        group.until(lambda: len(group.attacked.top.bodies) == before + len(many))
        assert group.attacked.top.bodies[before:] == many
    finally:
        group.close()


def flip(record: bytes, place: int) -> bytes:
    return record[:place] + bytes([record[place] ^ 1]) + record[place + 1 :]


#: What arrives in place of two records, by what was done to them on the way.
MEDDLED: dict[str, Callable[[bytes, bytes], bytes]] = {
    "the first byte": lambda first, second: flip(first, HEAD) + second,
    "the tag": lambda first, second: flip(first, len(first) - 1) + second,
    "a length that is shorter": lambda first, second: flip(first, 0) + second,
    "repeated": lambda first, second: first + first,
    "reordered": lambda first, second: second + first,
    "the first left out": lambda first, second: second,
    "cut": lambda first, second: first[:-1] + second,
    "no record": lambda first, second: bytes(HEAD) + first,
    "a record of a tag alone": lambda first, second: b"\x10\0\0\0" + bytes(16),
    "a record without end": lambda first, second: b"\xff\xff\xff\x7f" + first,
    "not sealed": lambda first, second: HELLO,
}


@pytest.mark.parametrize("meddled", MEDDLED)
def test_what_was_meddled_with_is_closed_and_counted(
    end: End, sock: socket.socket, meddled: str
) -> None:
    sealer = sealed(end, sock)
    first, second = sealer.seal(HELLO[:9]), sealer.seal(HELLO[9:])
    sock.sendall(MEDDLED[meddled](first, second))
    end.until(lambda: end.is_closed(sock))
    assert end.peers == {}
    assert any("refused: a record" in line for line in end.logged)


def test_what_came_before_is_taken(end: End, sock: socket.socket) -> None:
    """A frame is whole, and the record behind it is none: both in one read."""
    sealer = sealed(end, sock)
    record = sealer.seal(HELLO)
    sock.sendall(record + record)
    end.until(lambda: end.is_closed(sock))
    end.until(lambda: any("refused: a record" in line for line in end.logged))
    assert end.peers == {}


@pytest.mark.parametrize("place", range(0, OPENING_SIZE, 5))
def test_each_byte_of_the_opening_counts(end: End, sock: socket.socket, place: int) -> None:
    sock.sendall(flip(Handshake(ring_of(KEY), connects=True).opening(), place))
    end.until(lambda: end.is_closed(sock))
    assert any("the key" in line or "another key" in line for line in end.logged)


def test_a_recorded_connection_changes_nothing(end: End) -> None:
    """All that a member has sent, sent once more: its opening is answered, and nothing else."""
    with contextlib.closing(end.connect()) as first:
        recording = Recording(first)
        sealer = sealed(end, recording)
        recording.sendall(sealer.seal(HELLO))
        end.until(lambda: end.peers)
    end.until(lambda: not end.peers)
    with contextlib.closing(end.connect()) as second:
        second.sendall(bytes(recording.sent))
        end.until(lambda: end.is_closed(second))
    assert end.peers == {}
    assert any("of another key" in line for line in end.logged)


class Recording:
    """A socket that keeps what is sent."""

    def __init__(self, sock: socket.socket) -> None:
        self.sent = bytearray()
        self._sock = sock

    def sendall(self, data: bytes) -> None:
        self.sent += data
        self._sock.sendall(data)

    def recv(self, size: int, flags: int) -> bytes:
        return self._sock.recv(size, flags)


def test_an_end_without_the_key_learns_nothing(end: End, sock: socket.socket) -> None:
    """It gets no answer at all, and cannot read one that it has recorded."""
    sock.sendall(Handshake(ring_of(bytes(32)), connects=True).opening())
    end.until(lambda: any("another key" in line for line in end.logged))
    sock.settimeout(DEADLINE)
    assert sock.recv(ANSWER_SIZE) == b""


def test_the_two_directions_have_other_keys(end: End, sock: socket.socket) -> None:
    """What an end has sent, sent back to it, does not open."""
    sealer = sealed(end, sock)
    with pytest.raises(InvalidTag):
        sealer.open(sealer.seal(HELLO))
