"""Non-members at a member's socket (promise 14): they are refused, and no member is harmed."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgpack
import pytest

from orcalike.transport.layers.com import WIRE_VERSION
from tests.lib.keyed import connect_sealed, ring_of

if TYPE_CHECKING:
    from tests.lib.programs import Program, Programs


def frame(kind: int, body: bytes, magic: int = 0x4F, version: int = WIRE_VERSION) -> bytes:
    """A frame as COM makes them."""
    return (len(body) + 4).to_bytes(4, "little") + bytes([magic, version, kind, 0]) + body


def hello(*fields: object, **header: int) -> bytes:
    return frame(1, msgpack.packb(fields), **header)


HELLO = hello("default", "", 77)
CAST, SEND, CONTACT = 2, 3, 4
NESTED = b"\x91" * 1000 + b"\x90"


def contact(body: bytes) -> bytes:
    """A control message that speaks in no view."""
    return frame(CONTACT, (1 << 63).to_bytes(8, "little") + body)


#: What ends a non-member's connection.
REFUSED = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "no frame at all": b"\x04\0\0\0" + b"\0" * 100,
    "a frame of nothing": b"\0\0\0\0\0\0\0\0",
    "a frame without end": b"\xff\xff\xff\xff" + HELLO[4:],
    "another version": hello("default", "", 77, version=1),
    "a wrong magic number": hello("default", "", 77, magic=1),
    "a frame before the greeting": frame(SEND, b"x"),
    "a greeting of nothing": frame(1, b""),
    "a greeting too long": frame(1, b"x" * 4000),
    "a greeting that does not end": frame(1, b"x" * 9000)[:3000],
    "a greeting that is nested deep": frame(1, NESTED),
    "other fields": hello("default"),
    "another group": hello("nobody", "", 77),
    "an unknown kind": HELLO + frame(9, b"x"),
    "a version that changes": HELLO + frame(SEND, b"x", version=3),
    "no control message": HELLO + contact(b"\xc1"),
    "a control message that is nested deep": HELLO + contact(NESTED),
    "a join of no member": HELLO + contact(msgpack.packb(["JOIN", [], {}])),
    "much of a view to come": HELLO + frame(SEND, (9 << 24).to_bytes(8, "little")) * 4000,
    "silence": b"",
    "half a greeting": HELLO[:10],
}
#: What a non-member says that changes nothing.
HELD = {
    "a greeting": HELLO,
    "half a frame": HELLO + frame(SEND, b"x" * 100)[:50],
    "a cast": HELLO + frame(CAST, b"\0" * 60),
    "an expulsion": HELLO
    + contact(msgpack.packb(["EXPELLED", [1, 9, 0, [["x:", 77, None, False]], True], 77, ""])),
    "a view": HELLO
    + contact(msgpack.packb(["INSTALL", [1, 9, 0, [["x:", 77, 0, False]], True], b""])),
    "a reset": HELLO + contact(msgpack.packb(["RESET", 1])),
}


def connect(address: str, key: bytes | None = None, said: bytes = b"") -> socket.socket:
    """A connection to a member, on which something was said; with `key` in sealed records."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(rest)
    else:
        host, _, port = rest.rpartition(":")
        sock = socket.create_connection((host, int(port)))
    sock.settimeout(20)
    if key is not None and said.startswith(HELLO):
        sealer = connect_sealed(sock, ring_of(key))
        said = b"".join(sealer.seal(said[at : at + 60_000]) for at in range(0, len(said), 60_000))
    with contextlib.suppress(ConnectionError):
        sock.sendall(said)
    return sock


def is_closed(sock: socket.socket) -> bool:
    """Wait until the other end closes; what it says meanwhile does not matter."""
    with contextlib.suppress(ConnectionError):
        while sock.recv(65536):
            pass
    return True


def make(programs: Programs, medium: str) -> tuple[Program, str, bytes | None]:
    """A member that writes, its address, and the key that TCP needs."""
    where = f"unix:{programs.directory}/maker" if medium == "unix" else "tcp:127.0.0.1:0"
    maker = programs.start("busy_member.py", "make", where)
    key = (programs.directory / "key").read_bytes() if medium == "tcp" else None
    return maker, str(maker.next_fact()["address"]), key


@pytest.mark.parametrize("medium", ["unix", "tcp"])
def test_non_members_harm_no_member(programs: Programs, medium: str) -> None:
    maker, address, key = make(programs, medium)
    other = programs.start("busy_member.py", "join", address)
    other.next_fact()
    began = time.monotonic()
    with contextlib.ExitStack() as held:
        for said in HELD.values():
            held.enter_context(connect(address, key, said))
        refused = [held.enter_context(connect(address, key, said)) for said in REFUSED.values()]
        if key is not None:  # without the key the best greeting is none
            refused += [held.enter_context(connect(address, None, HELLO))]
        assert all(map(is_closed, refused))
        late = programs.start("busy_member.py", "join", address)
        late.next_fact()
        lasted = time.monotonic() - began
        programs.call("stop")
        facts = [member.next_fact() for member in (maker, other, late)]
        assert len({str(fact["digest"]) for fact in facts}) == 1
        for fact in facts:
            assert fact["writers"] == {str(each["pid"]): each["written"] for each in facts}
        for member in (maker, other, late):
            assert member.end() == 0
    assert other.complaints() == late.complaints() == ""
    complaints = maker.complaints().splitlines()
    assert "more connections refused since" in maker.stderr()
    assert len(complaints) <= 2 * (lasted + 2), "at most one a second, and one with a count"
    assert "Traceback" not in maker.stderr()


def test_what_comes_of_a_view_to_come_does_not_fill_the_memory(programs: Programs) -> None:
    """From however many connections, one after the other."""
    maker, address, _ = make(programs, "unix")
    flood = HELLO + frame(SEND, (9 << 24).to_bytes(8, "little")) * 50_000
    before = maker.resident()
    for _ in range(50):
        with connect(address, said=flood) as sock:
            assert is_closed(sock)
    assert maker.resident() - before < 64 << 20
    programs.call("stop")
    maker.next_fact()
    assert maker.end() == 0


@pytest.mark.parametrize("medium", ["unix", "tcp"])
def test_silent_connections_keep_no_process_out(programs: Programs, medium: str) -> None:
    """As many as there may be from one source, and again as many all the time."""
    maker, address, _ = make(programs, medium)
    with contextlib.ExitStack() as held:
        for _ in range(100):
            held.enter_context(connect(address))
        over = threading.Event()

        def flood() -> None:
            while not over.is_set():
                held.enter_context(connect(address))
                time.sleep(0.002)

        flooding = threading.Thread(target=flood)
        flooding.start()
        held.callback(flooding.join)
        held.callback(over.set)
        late = programs.start("busy_member.py", "join", address)
        late.next_fact()
        over.set()
        flooding.join()
    programs.call("stop")
    assert maker.next_fact()["digest"] == late.next_fact()["digest"]
    assert (maker.end(), late.end()) == (0, 0)


def test_a_run_over_tcp_has_a_key_that_no_text_holds(programs: Programs) -> None:
    """The launcher passes it on a descriptor, that of what a rank starts is not."""
    (first, second) = programs.facts("-n2", "--tcp", "keyed.py")
    for fact in (first, second):
        assert len(fact["key"]) == 64
        assert fact["shown"] == []
        assert fact["child"] == "no key"
        assert fact["non_member"] == "closed"
    assert first["key"] == second["key"]
    assert first["key"] not in Path("/proc/self/environ").read_text(errors="replace")
    assert os.environ.get("ORCALIKE_KEY_FD") is None
