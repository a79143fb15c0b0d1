"""What TCP has lost it sends again soon: a connection does not stay silent long after its network (`sockets.py`)."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from orcalike.transport.drivers.sockets import SEND_AGAIN_MS, TCP_RTO_MAX_MS
from tests.lib.lossy_switch import lossy_switch
from tests.lib.processes import Process
from tests.lib.programs import PROGRAMS


def test_both_ends_of_a_connection_send_again_every_second_while_the_network_is_silent(
    tmp_path: Path,
) -> None:
    with socket.socket() as probe:
        try:
            probe.getsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS)
        except OSError:
            pytest.skip("this kernel has no bound for it: Linux 6.15 has")
    with lossy_switch(2, 1, 0.0) as switch:
        ends: list[Process] = []
        try:
            for way, host in zip(("listen", "connect"), switch.hosts, strict=True):
                address = f"tcp:{switch.hosts[0].address}:7471"
                command = [sys.executable, str(PROGRAMS / "tcp_end.py"), way, address]
                errors = tmp_path / way
                ends.append(Process(host.command(*command), errors, stdin=subprocess.PIPE))
                if way == "listen":
                    assert ends[0].next_fact() == {"listens": True}
            assert [end.next_fact() for end in ends] == [{"connected": True}] * 2
            switch.cut([0], [1])
            for end in ends:
                end.write()
            pauses = [end.next_fact()["pause"] for end in ends]
            assert all(pause <= 1000 * SEND_AGAIN_MS for pause in pauses), pauses
            switch.heal()
            assert [end.next_fact() for end in ends] == [{"received": 1}] * 2
            for end in ends:
                end.write()
            assert [end.end() for end in ends] == [0, 0]
        finally:
            for end in ends:
                end.kill()
