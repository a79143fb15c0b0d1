"""Where a process of a launcher's world listens, and what it says if it cannot."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcalike.environments import meeting
from orcalike.environments.meeting import Place, meet
from orcalike.environments.world import AtFirstHost, AtNames, World
from orcalike.errors import JoinFailed


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which another process listens."""
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        yield listener.getsockname()[1]


def world(rank: int, meets: AtFirstHost | AtNames) -> World:
    return World(launcher="kubelet", rank=rank, size=3, job="7", meets=meets)


@pytest.mark.parametrize(
    ("size", "local", "given", "stack"),
    [
        (32, 32, "", "PACK:XFER:ORDER:MBRSHIP:COM"),
        (32, 32, "PACK:XFER:TOTAL:MBRSHIP:COM", "PACK:XFER:TOTAL:MBRSHIP:COM"),
        (33, 33, "", ""),
        (3, 1, "", ""),
    ],
)
def test_the_order_of_a_world_on_one_host_is_in_shared_memory(
    size: int,
    local: int,
    given: str,
    stack: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it has room for so many again, and nothing else is asked for."""
    monkeypatch.setattr(meeting, "hold", lambda _: tmp_path)
    monkeypatch.setattr(meeting, "_at_names", lambda *_: Place(job="7", listen="x", seeds=("x",)))
    one = World(
        launcher="srun", rank=0, size=size, local_size=local, job="7", meets=AtNames(("x",) * size)
    )
    environ = {"ORCALIKE_STACK": given}
    assert meet(one, environ).stack == environ["ORCALIKE_STACK"] == stack


@pytest.mark.parametrize("rank", [0, 2])
def test_a_pod_whose_port_is_taken_is_named(
    rank: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    monkeypatch.setattr(meeting, "is_loopback", lambda _: False)
    names = AtNames(tuple(f"tcp:pod-{each}:{taken}" for each in range(3)))
    expected = (
        f"rank {rank} of this job cannot listen at tcp:0.0.0.0:{taken}: Address already in use: "
        "it is there already, or another process has the port"
    )
    with pytest.raises(JoinFailed) as caught:
        meet(world(rank, names), {})
    assert str(caught.value) == expected


def test_a_first_rank_whose_ports_are_all_taken(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting, "ports_of", lambda _: (taken, taken))
    with pytest.raises(JoinFailed, match=rf"rank 0 of this job cannot listen at .*:{taken}: Addr"):
        meet(world(0, AtFirstHost("127.0.0.1")), {})


@pytest.mark.parametrize("rank", [0, 1])
def test_another_reason_is_said(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more files may be opened: nothing is there, and no port is taken."""

    def refuse(*_: object) -> None:
        raise OSError(24, os.strerror(24))

    monkeypatch.setattr("orcalike.transport.drivers.sockets._bind_tcp", refuse)
    with pytest.raises(JoinFailed) as caught:
        meet(world(rank, AtFirstHost("127.0.0.1")), {})
    said = str(caught.value)
    assert said.startswith(f"rank {rank} of this job cannot listen at tcp:")
    assert said.endswith(": Too many open files")
