"""`orcalike run -H` with a real sshd on each host: what is promised whichever part dies."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.lib.broken_runs import VICTIMS, break_off
from tests.lib.ssh_hosts import COUNTS, SshHosts

_SHOWS_COLOUR = """
import os
import orcalike as orca
with orca.join() as group:
    group.barrier()
    print(group.size, os.environ["COLOUR"], flush=True)
    group.barrier()
"""


def test_a_group_over_hosts(two: SshHosts) -> None:
    result = two.run("-H", "b:2,c:2", two.write(COUNTS))
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 40" for rank in range(4)]
    result = two.run("-H", "localhost,b,c", "--sequencer", "rank", two.write(COUNTS))
    assert sorted(result.stdout.splitlines()) == [f"[{rank}] 30" for rank in range(3)], (
        result.stderr
    )
    assert two.rest() == []


#: What a user's shells read when they begin: a greeting, and what is wrong without a terminal.
_BEGINS = {
    ".cshrc": "echo Welcome; stty erase ^H",
    ".bashrc": "echo Welcome; stty erase ^H",
    ".config/fish/config.fish": "echo Welcome; stty -a",
}


@pytest.mark.parametrize("shell", ["csh", "tcsh", "fish", "bash"])
def test_login_shells(two: SshHosts, shell: str) -> None:
    """One host has it, the other another one."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    home = two.directory / "home"
    for name, text in _BEGINS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{text}\n")
    two.set_shell("b", path, str(home))
    assert two.hosts["a"].run(str(two.shell()), "b", "exec true") == "Welcome\n"
    result = two.run("-H", "b,c", "-x", "COLOUR=it's red; $HOME", two.write(_SHOWS_COLOUR))
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [f"[{n}] 2 it's red; $HOME" for n in range(2)]
    assert "Welcome" not in result.stdout + result.stderr
    result = two.run("-H", "b,c", "--remote-python", "/no/python", two.write(_SHOWS_COLOUR))
    assert (result.returncode, result.stdout) == (69, "")
    assert re.search(r"host [bc] has no interpreter /no/python .*--remote-python", result.stderr)
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
