"""`orcalike run -H` with a real sshd on each host: what is promised whichever part dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import SshHosts, command_of, ssh_hosts, unpack_sshd

#: A process that a rank starts outlives it, unless it is killed; each writes its number.
STAYS = """
import os, signal, subprocess, sys
rank = os.environ["RANK"]
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print("ready", os.environ.get("HOST_NAME", "here"), flush=True)
signal.pause()
"""

COUNTS = """
import sys
import orcalike as orca
from orcalike.objects import Counter
with orca.join() as group:
    counter = group.share(Counter, "n")
    other = orca.join("other").share(Counter, "n") if "other" in sys.argv else counter
    for _ in range(10):
        counter.add(1)
    group.barrier()
    print(counter.get(), flush=True)
"""


@pytest.fixture(scope="session")
def sshd_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sshd, unpacked."""
    return unpack_sshd(tmp_path_factory.mktemp("sshd"))


@pytest.fixture
def two(sshd_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """The user's host, and b and c."""
    directory = tmp_path_factory.mktemp("s")
    with ssh_hosts(3, sshd_root, directory) as made:
        yield made


def write(hosts: SshHosts, source: str) -> str:
    """A program that all hosts have."""
    path = hosts.directory / "prog.py"
    path.write_text(source)
    return str(path)


def test_a_group_over_hosts(two: SshHosts) -> None:
    result = two.run("-H", "b:2,c:2", write(two, COUNTS))
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 40" for rank in range(4)]
    result = two.run("-H", "localhost,b,c", "--sequencer", "rank", write(two, COUNTS))
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 30" for rank in range(3)], (
        result.stderr
    )
    assert two.rest() == []


def test_an_unreachable_host(two: SshHosts) -> None:
    two.hosts["c"].cut()
    result = two.run("-H", "b,c", write(two, COUNTS))
    assert result.returncode == 69
    assert re.search(
        r"cannot reach host c: ssh: connect to host 10\.77\.0\.3 port 22: ", result.stderr
    )
    two.hosts["c"].mend()
    assert two.rest() == []


VICTIMS = ("launcher", "agent", "ssh", "sshd", "cable")


@pytest.mark.parametrize("victim", VICTIMS)
def test_nothing_is_left_whichever_part_dies(two: SshHosts, victim: str) -> None:
    with two.started("-H", "b,c", write(two, STAYS)) as run:
        assert run.stdout is not None
        assert sorted(run.stdout.readline() for _ in range(2)) == ["[0] ready b\n", "[1] ready c\n"]
        harm(two, victim, run)
        assert run.wait(DEADLINE) == (-signal.SIGKILL if victim == "launcher" else 69)
        if victim != "launcher":
            assert run.stderr is not None
            assert re.search(r"rank 1 \(host c, pid \d+\) was lost first", run.stderr.read())
    if (
        victim == "agent"
    ):  # what its ranks have started in sessions of their own is left, as on one host
        for pid in two.sessions("c"):
            if "time.sleep(1000)" in command_of(pid):
                os.kill(pid, signal.SIGKILL)
    until(lambda: two.rest() == [], f"the end of {two.rest()}")


def harm(hosts: SshHosts, victim: str, run: subprocess.Popen[str]) -> None:
    """End a part of the connection to the host c."""
    if victim == "cable":
        hosts.hosts["c"].cut()
        return
    sign = {
        "launcher": ("a", "-m orcalike run"),
        "agent": ("c", "orcalike.launcher.agent"),
        "ssh": ("a", " c -- "),
        "sshd": ("c", "sshd: "),
    }[victim]
    host, text = sign
    for pid in hosts.sessions(host):
        command = command_of(pid)
        if text in command and (victim != "ssh" or " ssh " in f" {command}"):
            os.kill(pid, signal.SIGKILL)
            if victim in ("launcher", "agent"):
                return
