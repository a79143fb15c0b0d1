"""The examples over three hosts, of which one is cut off in the middle: what others have is right."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import SshHosts, ssh_hosts, unpack_sshd

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """The user's host, and b, c and d."""
    root = unpack_sshd(tmp_path_factory.mktemp("sshd"))
    with ssh_hosts(4, root, tmp_path_factory.mktemp("s")) as made:
        yield made
        until(lambda: made.rest() == [], "the end of all processes")


def views(folder: Path) -> int:
    """How many bytes of histories there are: they grow with the order."""
    return sum(path.stat().st_size for path in folder.iterdir())


def cut_in_the_middle(hosts: SshHosts, run: subprocess.Popen[str], history: Path) -> str:
    """Pull the cable of the host d when the run is under way; returns its stdout."""
    until(lambda: history.exists() and views(history) > 20_000, "a run under way")
    hosts.hosts["d"].cut()
    out, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, errors
    assert re.search(r"rank 2 \(host d, pid \d+\) was lost .*host d is lost", errors), errors
    return out


@pytest.mark.parametrize("restart", [False, True], ids=["keep-going", "restart on a spare host"])
def test_the_bank_keeps_its_money(three: SshHosts, restart: bool) -> None:
    history = three.directory / "history"
    history.mkdir()
    hosts = "b,c,d,localhost" if restart else "b,c,d"
    options = ["--restart", "1"] if restart else ["--keep-going"]
    command = ["-H", hosts, "-n", "3", *options, "-x", f"ORCALIKE_HISTORY={history}"]
    transfers = "60000" if restart else "20000"
    with three.started(*command, str(EXAMPLES / "bank.py"), "--transfers", transfers) as run:
        out = cut_in_the_middle(three, run, history)
    assert len(re.findall(r"check: ok, 16000 in 16 accounts", out)) == 2 + restart
    checked = subprocess.run(
        [sys.executable, "-m", "orcalike", "check-history", str(history)],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("example", "options", "result"),
    [
        ("tsp.py", ["--cities", "13"], r"best|optim"),
        ("asp.py", ["--cities", "120"], r"check: ok|ok"),
    ],
    ids=["tsp", "asp"],
)
def test_examples_over_three_hosts(
    three: SshHosts, example: str, options: list[str], result: str
) -> None:
    done = three.run("-H", "b,c,d", str(EXAMPLES / example), *options)
    assert done.returncode == 0, done.stderr
    assert re.search(result, done.stdout, re.IGNORECASE), done.stdout
