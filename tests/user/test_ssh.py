"""`orcalike run -H` with a real sshd on each host: what is promised whichever part dies."""

from __future__ import annotations

import re

import pytest

from tests.lib.broken_runs import VICTIMS, break_off
from tests.lib.ssh_hosts import COUNTS, SshHosts


def test_a_group_over_hosts(two: SshHosts) -> None:
    result = two.run("-H", "b:2,c:2", two.write(COUNTS))
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 40" for rank in range(4)]
    result = two.run("-H", "localhost,b,c", "--sequencer", "rank", two.write(COUNTS))
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 30" for rank in range(3)], (
        result.stderr
    )
    assert two.rest() == []


def test_an_unreachable_host(two: SshHosts) -> None:
    two.hosts["c"].cut()
    result = two.run("-H", "b,c", two.write(COUNTS))
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
