"""Heartbeats for an endpoint whose datagram queue is full are tried again, and those to others are not."""

from __future__ import annotations

import socket
from pathlib import Path

from orcalike.transport.view import Member
from tests.lib.processes import until
from tests.unit.transport.drivers.test_heartbeat import End

PERIOD = 100_000_000
BEATS = 8


def test_a_peer_that_could_not_be_beaten_to_is_tried_again_within_the_period(
    tmp_path: Path,
) -> None:
    """Four times at the most in each period; the other one, whose queue has room, once."""
    end = End(f"unix:{tmp_path}/end")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as empty,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler,
    ):
        full.bind(f"{tmp_path}/full~")
        empty.bind(f"{tmp_path}/empty~")
        filler.setblocking(False)
        try:
            while True:
                filler.sendto(b"x", f"{tmp_path}/full~")
        except BlockingIOError:
            pass
        empty.settimeout(30)
        members = [
            Member(f"unix:{tmp_path}/{name}", i, i) for i, name in enumerate(["full", "empty"], 1)
        ]
        end.beat(*members, period=PERIOD)
        for _ in range(BEATS):
            empty.recv(100)
        unsent, sent = end.count("unsent"), end.count("sent")
        assert unsent > 3 * sent // 2, "it is tried more often than the other is beaten to"
        assert unsent <= 4 * (sent + 1)
        full.recv(100)  # the filler's
        before = end.count("sent")
        until(lambda: end.count("sent") > before + 1)
        while full.recv(100) == b"x":
            pass
    end.close()
