"""Hosts that connections and datagrams reach, or only one of them, or none."""

from __future__ import annotations

import math
import os
import selectors
import socket
from collections.abc import Iterator

import pytest

from orcalike.launcher import probes
from orcalike.launcher.probes import NO_DATAGRAMS, Door, Probes
from tests.lib.descriptors import without_descriptors


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


@pytest.mark.parametrize("has_spare", [True, False])
def test_a_door_without_descriptors_does_not_keep_the_loop_awake(
    selector: selectors.BaseSelector, monkeypatch: pytest.MonkeyPatch, has_spare: bool
) -> None:
    """Connections are let go by the spare one, or wait; both have reached the host."""
    door = Door(selector, "127.0.0.1")
    port = int(door.address.rpartition(":")[2])
    knocking = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    if not has_spare:
        monkeypatch.setattr(os, "devnull", "/none")  # the system has no room for it
    with without_descriptors():
        for _ in range(50):
            events = selector.select(0)
            for key, _ in events:
                key.data()
        assert events == []
    door.close()
    for sock in knocking:
        sock.close()


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
