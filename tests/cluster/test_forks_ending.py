"""Processes that ranks have forked are killed: that is certain to the others, though no member was connected to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orcalike.transport.drivers.heartbeat_report import BEATS
from tests.lib.fake_ssh import FakeSsh

if TYPE_CHECKING:
    from tests.lib.programs import Programs

SILENCE = {"ORCALIKE_DETECTION": "12", "BEATS_APART": str(12 / BEATS)}
"""Seconds: no member is suspected for silence, and each survivor sees the ends while the leases last."""

WAYS = pytest.mark.parametrize(
    "how", [[], ["--sequencer", "witness"], ["--tcp"]], ids=["memory", "sockets", "tcp"]
)


@WAYS
def test_a_run_comes_back_when_all_ranks_have_ended_with_what_they_had_forked(
    programs: Programs, how: list[str]
) -> None:
    """By TCP nothing but the launcher's word says that the forked processes have ended, too."""
    arguments = ["-n2", "--restart", "2", *how, "forks_ending.py"]
    facts = programs.facts(*arguments, KILLS="ranks", **SILENCE)
    assert [each["lives"] for each in facts] == [1, 1]
    assert all(each["written"] for each in facts)


@WAYS
def test_ranks_go_on_when_most_members_were_forked_and_have_ended(
    programs: Programs, how: list[str]
) -> None:
    """The ranks that forked them live."""
    arguments = ["-n2", *how, "forks_ending.py"]
    facts = programs.facts(*arguments, KILLS="forked", EACH="3", **SILENCE)
    assert [each["lives"] for each in facts] == [0, 0]
    assert all(each["written"] for each in facts)


def test_an_agent_sees_what_the_ranks_of_its_host_have_forked(
    programs: Programs, tmp_path: Path
) -> None:
    """The ranks are certain of it, which are on that host."""
    ssh = {"ORCALIKE_SSH": str(FakeSsh(tmp_path).path)}
    arguments = ["-H", "a:2", "forks_ending.py"]
    facts = programs.facts(*arguments, KILLS="forked", EACH="3", **SILENCE, **ssh)
    assert [each["lives"] for each in facts] == [0, 0]
    assert all(each["written"] for each in facts)
