"""The examples over three hosts, of which one is cut off in the middle: what others have is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.cut_examples import EXAMPLES, Example, cut_in_the_middle
from tests.lib.processes import until
from tests.lib.ssh_hosts import SshHosts, ssh_hosts


@pytest.fixture
def three(sshd_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """The user's host, and b, c and d."""
    with ssh_hosts(4, sshd_root, tmp_path_factory.mktemp("s")) as made:
        yield made
        until(lambda: made.rest() == [], "the end of all processes", pause=0.1)


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_others_go_on(three: SshHosts, example: Example) -> None:
    """That of rank 0; the result is the right one, and the histories keep all promises (also G39)."""
    assert cut_in_the_middle(three, example, "b") == []


def test_the_bank_on_a_spare_host(three: SshHosts) -> None:
    assert cut_in_the_middle(three, EXAMPLES["bank"], "d", restart=True) == []
