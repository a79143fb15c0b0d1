"""Hosts that connections and datagrams reach, or only one of them, or none."""

from __future__ import annotations

import errno
import math
import os
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from orcalike.launcher import probes
from orcalike.launcher.listeners import bind_tcp
from orcalike.launcher.probes import NO_DATAGRAMS, PROBE_SECONDS, Door, Probes
from tests.lib.descriptors import count_files, without_descriptors


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


def tried(selector: selectors.BaseSelector, addresses: list[str]) -> list[str]:
    """What is wrong with each; what has come to nothing when all is still is given up."""
    found: list[list[str]] = []
    here = Probes(selector)
    here.try_all(addresses, found.append)
    while not found:
        events = selector.select(0.5)
        for key, _ in events:
            key.data()
        if not events:
            here.expire(math.inf)
    return found[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_door_is_reached_in_both_ways(selector: selectors.BaseSelector, host: str) -> None:
    door = Door(selector, host)
    assert tried(selector, [door.address, door.address]) == ["", ""]
    door.close()


@pytest.mark.parametrize(("spare", "let_go"), [("kept", 8), ("lost", 1), ("none", 0)])
def test_a_door_without_descriptors_does_not_keep_the_loop_awake(
    selector: selectors.BaseSelector, monkeypatch: pytest.MonkeyPatch, spare: str, let_go: int
) -> None:
    """Connections are let go by the spare one, or wait; both have reached the host."""
    files = count_files()
    with monkeypatch.context() as patch:
        if spare == "none":
            patch.setattr(os, "devnull", "/none")  # the system has no room for it
        door = Door(selector, "127.0.0.1")
    port = int(door.address.rpartition(":")[2])
    knocking = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    with without_descriptors(), monkeypatch.context() as patch:
        if spare == "lost":
            patch.setattr(os, "devnull", "/none")  # it is let go, and there is no other
        for _ in range(50):
            events = selector.select(0)
            for key, _ in events:
                key.data()
        assert events == []
    for number, sock in enumerate(knocking):
        sock.setblocking(False)
        if number < let_go:
            assert sock.recv(1) == b""
        else:
            with pytest.raises(BlockingIOError):
                sock.recv(1)
        sock.close()
    door.close()
    assert not selector.get_map()
    assert count_files() == files


def test_connections_and_datagrams_that_have_gone_again_hold_up_nothing(
    selector: selectors.BaseSelector,
) -> None:
    door = Door(selector, "127.0.0.1")
    for key in list(selector.get_map().values()):
        key.data()
    assert tried(selector, [door.address]) == [""]
    door.close()


def test_what_only_connections_reach(selector: selectors.BaseSelector) -> None:
    """At the one port nothing takes datagrams; at the other one they are lost."""
    with (
        socket.create_server(("127.0.0.1", 0)) as alone,
        socket.create_server(("127.0.0.1", 0)) as beside,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute,
    ):
        mute.bind(beside.getsockname())
        places = [f"tcp:127.0.0.1:{each.getsockname()[1]}" for each in (alone, beside)]
        assert tried(selector, places) == [NO_DATAGRAMS, NO_DATAGRAMS]


def test_what_nothing_reaches(selector: selectors.BaseSelector) -> None:
    door = Door(selector, "127.0.0.1")
    door.close()
    assert tried(selector, [door.address]) == ["Connection refused"]


def test_a_door_answers_nothing_but_probes(selector: selectors.BaseSelector) -> None:
    door = Door(selector, "127.0.0.1")
    port = int(door.address.rpartition(":")[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.connect(("127.0.0.1", port))
        other.setblocking(False)
        for said in (b"", b"x" * 60_000, probes.DATAGRAM):
            other.send(said)
            for key, _ in selector.select(30):
                key.data()
        assert other.recv(99) == probes.DATAGRAM
        with pytest.raises(BlockingIOError):
            other.recv(99)
    door.close()


def test_a_time_limit_counts_from_the_beginning(selector: selectors.BaseSelector) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute,
    ):
        mute.bind(listener.getsockname())
        port = listener.getsockname()[1]
        here = Probes(selector)
        found: list[list[str]] = []
        assert here.timeout(time.monotonic()) == math.inf
        began = time.monotonic()
        here.try_all([f"tcp:127.0.0.1:{port}"], found.append)
        assert here.timeout(began) >= PROBE_SECONDS
        assert here.timeout(time.monotonic()) <= PROBE_SECONDS
        with pytest.raises(ValueError, match="too many"):
            here.try_all([], found.append)  # one after the other
        for key, _ in selector.select(30):
            key.data()
        here.expire(began + PROBE_SECONDS / 2)
        assert found == []
        late = time.monotonic() + PROBE_SECONDS
        assert here.timeout(late) == 0
        here.expire(late)
        assert found == [[NO_DATAGRAMS]]
        assert here.timeout(late) == math.inf
        assert not selector.get_map()


def test_no_address_and_too_many(selector: selectors.BaseSelector) -> None:
    assert tried(selector, []) == []
    with pytest.raises(ValueError, match="too many"):
        tried(selector, ["tcp:127.0.0.1:1"] * (probes.PROBES_MAX + 1))
    assert not selector.get_map()


def test_an_address_that_cannot_be_tried_says_why(selector: selectors.BaseSelector) -> None:
    """At once: a link-local address is none without its interface; and without descriptors none can be."""
    door = Door(selector, "127.0.0.1")
    assert tried(selector, ["tcp:[fe80::1]:9", door.address]) == ["Invalid argument", ""]
    with without_descriptors():
        assert tried(selector, [door.address]) == ["Too many open files"]
    with without_descriptors(free=2):  # one for the door's end of the connection
        assert tried(selector, [door.address]) == [""]
    door.close()
    assert not selector.get_map()


def test_a_firewall_that_refuses_datagrams_is_not_waited_for(
    selector: selectors.BaseSelector, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(socket.socket):
        def send(self, *arguments: Any) -> int:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    door = Door(selector, "127.0.0.1")
    monkeypatch.setattr(socket, "socket", Refused)
    found: list[list[str]] = []
    Probes(selector).try_all([door.address], found.append)
    while not found:
        for key, _ in selector.select(30):
            key.data()
    assert found == [[NO_DATAGRAMS]]
    monkeypatch.undo()
    door.close()


def test_a_port_that_is_free_for_connections_alone_is_not_taken(
    selector: selectors.BaseSelector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        ports = [other.getsockname()[1], 0]
        monkeypatch.setattr(probes, "bind_tcp", lambda host, port: bind_tcp(host, ports.pop(0)))
        door = Door(selector, "127.0.0.1")
        assert tried(selector, [door.address]) == [""]
        door.close()
