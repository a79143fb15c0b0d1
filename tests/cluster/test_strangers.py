"""Strangers at a member's socket (promise 14): they are told off, and nobody is harmed."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

import msgpack
import pytest

if TYPE_CHECKING:
    from tests.cluster.conftest import Process, Programs


def frame(kind: int, body: bytes, magic: int = 0x4F, version: int = 1) -> bytes:
    """A frame as COM makes them."""
    return (len(body) + 4).to_bytes(4, "little") + bytes([magic, version, kind, 0]) + body


def hello(*fields: object, **header: int) -> bytes:
    return frame(1, msgpack.packb(fields), **header)


HELLO = hello("default", "", 77)
CAST, SEND, CONTACT = 2, 3, 4

#: What a stranger says, and what the member's log says of it.
REFUSED = {
    "another protocol": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a frame of 542393675 bytes"),
    "no frame at all": (b"\x04\0\0\0" + b"\0" * 100, "the first bytes are not orcalike's"),
    "a frame of nothing": (b"\0\0\0\0\0\0\0\0", "a frame of 4 bytes"),
    "a frame without end": (b"\xff\xff\xff\xff" + HELLO[4:], "a frame of 4294967299 bytes"),
    "another version": (hello("default", "", 77, version=2), "wire version 2; this is version 1"),
    "a wrong magic number": (hello("default", "", 77, magic=1), "not orcalike's"),
    "a frame before the greeting": (frame(SEND, b"x"), "a frame of kind 3 before the greeting"),
    "a greeting of nothing": (frame(1, b""), "a greeting that is not msgpack"),
    "a greeting too long": (frame(1, b"x" * 4000), "a greeting of 4008 bytes"),
    "a greeting that does not end": (frame(1, b"x" * 9000)[:3000], "no greeting"),
    "other fields": (hello("default"), "a greeting with other fields"),
    "another group": (hello("nobody", "", 77), "a stranger asks for group 'nobody'"),
    "an unknown kind": (HELLO + frame(9, b"x"), "a frame of unknown kind 9"),
    "a version that changes": (HELLO + frame(SEND, b"x", version=3), "a frame with a wrong header"),
    "no control message": (HELLO + frame(CONTACT, (1 << 63).to_bytes(8, "little") + b"\xc1"),
                           "a control message that is not msgpack"),
    "a join of nobody": (
        HELLO + frame(CONTACT, (1 << 63).to_bytes(8, "little") + msgpack.packb(["JOIN", [], {}])),
        "not a member: []",
    ),
}  # fmt: skip
#: What a stranger says that waits for more.
HELD = {
    "nothing": b"",
    "half a greeting": HELLO[:10],
    "a greeting": HELLO,
    "half a frame": HELLO + frame(SEND, b"x" * 100)[:50],
    "a cast": HELLO + frame(CAST, b"\0" * 60),
}


def connect(address: str) -> socket.socket:
    """A connection to a member."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(rest)
    else:
        host, _, port = rest.rpartition(":")
        sock = socket.create_connection((host, int(port)))
    sock.settimeout(20)
    return sock


def is_closed(sock: socket.socket) -> bool:
    """Wait until the other end closes; what it says meanwhile does not matter."""
    with contextlib.suppress(ConnectionResetError):
        while sock.recv(4096):
            pass
    return True


def wait_until_said(programs: Programs, member: Process, words: str, why: str) -> None:
    programs.until(lambda: words in member.said(), f"{why}: {words}")


@pytest.mark.parametrize("medium", ["unix", "tcp"])
def test_strangers_harm_nobody(programs: Programs, medium: str) -> None:
    where = f"unix:{programs.directory}/maker" if medium == "unix" else "tcp:127.0.0.1:0"
    maker = programs.start("busy_member.py", "make", where, PAUSE="0.01")
    address = str(maker.hear()["address"])
    other = programs.start("busy_member.py", "join", address)
    other.hear()
    with contextlib.ExitStack() as held:
        for said in HELD.values():
            held.enter_context(connect(address)).sendall(said)
        for name, (said, words) in REFUSED.items():
            with connect(address) as sock:
                sock.sendall(said)
                wait_until_said(programs, maker, words, name)
        with connect(address) as sock:
            sock.sendall(HELLO[:10])  # and off again, with half a greeting said
        late = programs.start("busy_member.py", "join", address)
        late.hear()
        time.sleep(0.2)
        programs.call("stop")
        facts = [member.hear() for member in (maker, other, late)]
        assert len({str(fact["digest"]) for fact in facts}) == 1
        for fact in facts:
            assert fact["writers"] == {str(each["pid"]): each["written"] for each in facts}
        for member in (maker, other, late):
            assert member.end() == 0
    assert other.complaints() == late.complaints() == ""
    assert "Traceback" not in maker.said()


def test_too_many_strangers_keep_nobody_out(programs: Programs) -> None:
    maker = programs.start(
        "busy_member.py", "make", f"unix:{programs.directory}/maker", PAUSE="0.01"
    )
    address = str(maker.hear()["address"])
    with contextlib.ExitStack() as held:
        for _ in range(64):
            held.enter_context(connect(address))
        refused = held.enter_context(connect(address))
        assert is_closed(refused)
        assert "too many connections that have not greeted" in maker.said()
    late = programs.start("busy_member.py", "join", address)
    late.hear()
    programs.call("stop")
    assert maker.hear()["digest"] == late.hear()["digest"]
    assert (maker.end(), late.end()) == (0, 0)
