"""Addresses: one way to write each, and which may be used with and without a key (S1)."""

from __future__ import annotations

import socket
import struct

import pytest

from orcalike.transport.drivers import sockets
from orcalike.transport.drivers.addresses import (
    datagram_address,
    is_name,
    normal,
    number,
    split,
    target,
)
from orcalike.transport.errors import InsecureConfig

LOOPBACK = {
    "127.0.0.1": "127.0.0.1",
    "127.8.8.8": "127.8.8.8",
    "localhost": "127.0.0.1",
    "[::1]": "::1",
    "[0:0:0:0:0:0:0:1]": "::1",
    "[::ffff:127.0.0.1]": "127.0.0.1",
}
BEYOND = {
    "10.0.0.5": "10.0.0.5",
    "192.0.2.1": "192.0.2.1",
    "169.254.1.1": "169.254.1.1",
    "[fd00::5]": "fd00::5",
    "[FD00:0:0::5]": "fd00::5",
    "[::ffff:10.0.0.5]": "10.0.0.5",
}
WILDCARDS = {"0.0.0.0": "0.0.0.0", "[::]": "::", "[::ffff:0.0.0.0]": "0.0.0.0"}


@pytest.mark.parametrize(("host", "same"), [*LOOPBACK.items(), *BEYOND.items(), *WILDCARDS.items()])
def test_there_is_one_way_to_write_a_host(host: str, same: str) -> None:
    written = f"tcp:[{same}]:7" if ":" in same else f"tcp:{same}:7"
    assert normal(f"tcp:{host}:7") == written == normal(written)
    assert split(written) == ("tcp", same, 7)


@pytest.mark.parametrize("beyond", [False, True], ids=["no key", "key"])
@pytest.mark.parametrize("host", [*LOOPBACK, *BEYOND])
def test_no_connection_leaves_this_host_without_a_key(host: str, beyond: bool) -> None:
    address = f"tcp:{host}:7"
    if host in LOOPBACK or beyond:
        assert target(address, beyond=beyond) == split(normal(address))
        assert datagram_address(address, beyond=beyond)
    else:
        with pytest.raises(
            InsecureConfig, match=r"is not on the loopback interface.*`orcalike keygen`"
        ):
            target(address, beyond=beyond)
        with pytest.raises(InsecureConfig):
            sockets.connect(address, beyond=beyond)
        assert datagram_address(address, beyond=beyond) == b""


@pytest.mark.parametrize("host", [*LOOPBACK, *BEYOND, *WILDCARDS])
def test_nothing_is_bound_beyond_this_host_without_a_key(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host in LOOPBACK:
        listener, address = sockets.listen(f"tcp:{host}:0")
        with listener:
            assert split(address)[:2] == ("tcp", LOOPBACK[host])
        return
    monkeypatch.setattr(socket, "socket", None)
    with pytest.raises(InsecureConfig, match="orcalike keygen"):
        sockets.listen(f"tcp:{host}:0")


def test_a_wildcard_is_bound_under_a_key_and_is_no_target() -> None:
    for host in WILDCARDS:
        listener, address = sockets.listen(f"tcp:{host}:0", beyond=True)
        with listener, sockets.datagrams_beside(listener):
            with pytest.raises(ValueError, match="for listening"):
                target(address, beyond=True)
            assert datagram_address(address, beyond=True) == b""


def test_ipv4_and_ipv6_are_bound_apart() -> None:
    """The beats of a member leave by a socket of its own kind, and so do its connections."""
    first, address = sockets.listen("tcp:[::]:0", beyond=True)
    port = split(address)[2]
    second, other = sockets.listen(f"tcp:0.0.0.0:{port}", beyond=True)
    with first, second:
        assert (address, other) == (f"tcp:[::]:{port}", f"tcp:0.0.0.0:{port}")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp:10.0.0.5", "is not an address"),
        ("tcp::7", "is not an address"),
        ("tcp:10.0.0.5:65536", "tcp:10.0.0.5:65536': a port is a number from 0 to 65535"),
        ("tcp:10.0.0.5:-1", "a port is a number from 0 to 65535"),
        ("tcp:[::1]:http", "a port is a number from 0 to 65535"),
        ("tcp:10.0.0.5:\u0663", "a port is a number from 0 to 65535"),
        ("tcp:fd00::5:7", r"stands in brackets, tcp:\[fd00::5\]:7"),
        ("tcp:[fe80::1%eth0]:7", "a zone means something on this host only"),
        ("tcp:[fe80::1]:7", "link-local"),
        ("tcp:224.0.0.1:7", "means many"),
        ("tcp:[ff02::1]:7", "means many"),
        ("tcp:255.255.255.255:7", "means many"),
        ("tcp:10.0.0.256:7", "is no host"),
        ("tcp:10.1:7", "is no host"),
        ("tcp:0x7f000001:7", "is no host"),
        ("tcp:node7:7", "must be a number"),
        ("udp:10.0.0.5:7", "is not an address"),
    ],
)
def test_what_is_no_address_is_refused_with_words(address: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        normal(address)
    assert datagram_address(address, beyond=True) == b""
    with pytest.raises(ValueError, match=r".+"):
        sockets.connect(address, beyond=True)


def test_a_name_stands_only_where_names_may() -> None:
    assert normal("tcp:node7.example:7", names=True) == "tcp:node7.example:7"
    for name in ("node7", "node7.example.", "job-0.svc", "1a", "a_b"):
        assert is_name(name)
    for other in ("", "10.0.0.5", "node.7", "-a", "a..b", "a" * 64, "a b", "a" * 300, "[::1]", "é"):
        assert not is_name(other)


def test_the_kernel_gets_a_host_as_it_is() -> None:
    family = struct.pack("=H", socket.AF_INET)
    packed = family + struct.pack("!H", 7) + bytes([10, 0, 0, 5]) + bytes(8)
    assert datagram_address("tcp:[::ffff:10.0.0.5]:7", beyond=True) == packed
    assert len(datagram_address("tcp:[fd00::5]:7", beyond=True)) == 28
    with pytest.raises(ValueError, match="zone"):
        number("fe80::1%1")
