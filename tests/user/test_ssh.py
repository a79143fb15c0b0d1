"""`orcalike run -H` with a real sshd on each host: what is promised whichever part dies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.broken_runs import VICTIMS, break_off
from tests.lib.ssh_hosts import SshHosts, ssh_hosts, unpack_sshd

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


@pytest.mark.parametrize("victim", VICTIMS)
def test_nothing_is_left_whichever_part_dies(two: SshHosts, victim: str) -> None:
    """The campaign has more of it (G38)."""
    assert break_off(two, victim).wrong == []
