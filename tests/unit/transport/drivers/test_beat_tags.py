"""Tags of heartbeats: by UDP a process with the key has made them, or they count for nothing (S4)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from orcalike.transport.drivers.siphash import tag_of
from orcalike.transport.view import Member
from tests.lib.processes import until
from tests.unit.transport.drivers.test_heartbeat import (
    DEADLINE,
    LAYOUT,
    NEVER,
    End,
    end,
    member_at,
    pack,
    path_of,
    raw,
)

__all__ = ["end", "raw"]

#: Of the reference: tags of the bytes 0, 1, 2 and so on, so many as the row, under the key 0 to 15.
TAGS = [
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
    "f88164c12d9c8faf7d0f6e7c7bcd5579",
    "1368875980776f8854527a07690e9627",
    "14eeca338b208613485ea0308fd7a15e",
    "a1f1ebbed8dbc153c0b84aa61ff08239",
    "3b62a9ba6258f5610f83e264f31497b4",
    "264499060ad9baabc47f8b02bb6d71ed",
    "00110dc378146956c95447d3f3d0fbba",
    "0151c568386b6677a2b4dc6f81e5dc18",
    "d626b266905ef35882634df68532c125",
]
KEY, OTHER = bytes(range(16)), bytes(16)


def test_tags_are_those_of_the_reference() -> None:
    assert [tag_of(KEY, bytes(range(size))).hex() for size in range(len(TAGS))] == TAGS


@pytest.fixture
def keyed() -> Iterator[tuple[End, socket.socket, Member]]:
    """An endpoint whose beats by UDP have tags, and a peer that a test plays by hand."""
    end = End("tcp:127.0.0.1:0")
    end.heartbeat.set_keys([KEY])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.bind(("127.0.0.1", 0))
        raw.settimeout(DEADLINE)
        raw.connect(("127.0.0.1", int(end.member.address.rpartition(":")[2])))
        yield end, raw, Member(f"tcp:127.0.0.1:{raw.getsockname()[1]}", 1, 1)
    end.close()


def test_beats_by_udp_have_a_tag_under_the_key(
    keyed: tuple[End, socket.socket, Member],
) -> None:
    end, raw, peer = keyed
    me = end.member.incarnation
    end.beat(peer, period=NEVER)
    came = raw.recv(100)
    assert (len(came), tag_of(KEY, came[:56])) == (72, came[56:])
    good, later = pack(me, sent=5), pack(me, sent=6)
    wrong = {
        "size": [good, good + bytes(15), good + bytes(17)],
        "tag": [
            good + bytes(16),
            good + tag_of(OTHER, good),
            later + tag_of(KEY, good),
            good + tag_of(KEY, good)[:-1] + b"x",
        ],
    }
    for name, datagrams in wrong.items():
        for datagram in datagrams:
            raw.send(datagram)
        while end.count(name) < len(datagrams):
            time.sleep(0.001)
        assert end.count(name) == len(datagrams)
    assert end.count("taken") == 0
    for _ in range(2):
        raw.send(good + tag_of(KEY, good))
    until(lambda: end.count("stale") == 1)
    assert end.count("taken") == 1


def test_the_key_of_beats_is_changed(keyed: tuple[End, socket.socket, Member]) -> None:
    """Beats are tagged under the new key at once; under the old one they are taken on."""
    end, raw, peer = keyed
    end.heartbeat.set_keys([OTHER])
    end.beat(peer, period=NEVER)
    came = raw.recv(100)
    assert tag_of(OTHER, came[:56]) == came[56:]
    for sent, key in enumerate((KEY, OTHER), 5):
        beat = pack(end.member.incarnation, sent=sent)
        raw.send(beat + tag_of(key, beat))
    until(lambda: end.count("taken") == 2)


def test_unix_sockets_need_no_tag(end: End, raw: socket.socket) -> None:
    end.heartbeat.set_keys([KEY])
    end.beat(member_at(raw), period=NEVER)
    assert len(raw.recv(100)) == LAYOUT.size
    raw.sendto(pack(end.member.incarnation, sent=5), path_of(end))
    until(lambda: end.count("taken") == 1)


@pytest.mark.parametrize("keys", [[], [b"short"], [KEY, b"short"]])
def test_what_is_no_key_of_beats(end: End, keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        end.heartbeat.set_keys(keys)
