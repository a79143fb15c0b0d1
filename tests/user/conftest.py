"""What the users' tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.command import Cli
from tests.lib.fetched import fetched
from tests.lib.own_runs import own_runs
from tests.lib.ssh_hosts import SshHosts, ssh_hosts, unpack_sshd

__all__ = ["own_runs"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command, for this test."""
    return Cli(tmp_path)


@pytest.fixture(scope="session")
def sshd_root() -> Path:
    """sshd, unpacked below `build/tests`, once."""

    def fetch(folder: Path) -> None:
        unpack_sshd(folder)

    return unpack_sshd(fetched("sshd", fetch))


@pytest.fixture
def two(sshd_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """Hosts with a real sshd: the user's own, a, and b and c."""
    with ssh_hosts(3, sshd_root, tmp_path_factory.mktemp("s")) as made:
        yield made
