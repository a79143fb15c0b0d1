"""What TCP has lost it sends again soon: a connection does not stay silent long after its network (`sockets.py`)."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcalike.transport.drivers.sockets import SEND_AGAIN_MS, TCP_RTO_MAX_MS
from tests.lib.lossy_switch import LossySwitch, lossy_switch
from tests.lib.processes import Process
from tests.lib.programs import PROGRAMS


@pytest.fixture
def switch() -> Iterator[LossySwitch]:
    """Between two hosts, with a kernel that has a bound for the time until it sends again."""
    with socket.socket() as probe:
        try:
            probe.getsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS)
        except OSError:
            pytest.skip("this kernel has no bound for it: Linux 6.15 has")
    with lossy_switch(2, 1, 0.0) as made:
        yield made


@pytest.fixture
def ends(switch: LossySwitch, tmp_path: Path) -> Iterator[list[Process]]:
    """Of one connection: that which accepted it, and that which has connected."""
    with contextlib.ExitStack() as stack:
        made: list[Process] = []
        for way, host in zip(("listen", "connect"), switch.hosts, strict=True):
            address = f"tcp:{switch.hosts[0].address}:7471"
            command = host.command(sys.executable, str(PROGRAMS / "tcp_end.py"), way, address)
            made.append(Process(command, tmp_path / way, stdin=subprocess.PIPE))
            stack.callback(made[-1].kill)
            if way == "listen":
                assert made[0].next_fact() == {"listens": True}
        assert [end.next_fact() for end in made] == [{"connected": True}] * 2
        yield made


def test_both_ends_of_a_connection_send_again_every_second_while_the_network_is_silent(
    switch: LossySwitch, ends: list[Process]
) -> None:
    switch.cut([0], [1])
    for end in ends:
        end.write("send")
    pauses = [end.next_fact()["pause"] for end in ends]
    assert all(pause <= 1000 * SEND_AGAIN_MS for pause in pauses), pauses
    switch.heal()
    for end in ends:
        end.write("receive")
    assert [end.next_fact() for end in ends] == [{"received": 1}] * 2


def test_what_an_end_has_sent_before_it_was_closed_arrives_when_the_network_is_whole_again(
    switch: LossySwitch, ends: list[Process]
) -> None:
    """With that bound alone TCP gives up such an end at the first try that takes as long."""
    switch.cut([0], [1])
    ends[1].write("send")
    ends[1].next_fact()
    ends[1].write("close")
    assert ends[1].next_fact() == {"closed": True}
    time.sleep(3 * SEND_AGAIN_MS / 1000)
    switch.heal()
    ends[0].write("receive")
    assert ends[0].next_fact() == {"received": 1}
