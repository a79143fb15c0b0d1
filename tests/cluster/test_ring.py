"""The order in shared memory, between processes that are killed and stopped within a write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.ring_programs import compiled, compiler, run, with_mutant

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")

EVERY = 29
"""Each 29th machine instruction of a write; the campaign has them all."""


@pytest.mark.parametrize("mode", ["kill", "stop"])
def test_a_member_can_end_within_a_write_at_any_instruction(tmp_path: Path, mode: str) -> None:
    facts = run(compiled("killstep", tmp_path), mode, EVERY)
    assert facts["code"] == 0, facts["stderr"]
    assert facts["cycles"] > 40
    assert 0 < facts["landed"] < facts["cycles"]
    for each in ("lost", "twice", "differ", "blocked", "late", "fault"):
        assert facts[each] == 0, each
    assert (facts["refused"] > 0) == (mode == "stop")


def test_a_write_after_an_expulsion_is_found(tmp_path: Path) -> None:
    """By the same program, if a writer does not look at the views that it scans."""
    headers = with_mutant("ring-no-look-at-views", tmp_path)
    facts = run(compiled("killstep", tmp_path, headers=headers), "stop", 4 * EVERY, 3)
    assert facts["late"] > 0


def test_members_are_killed_while_all_write_at_full_speed(tmp_path: Path) -> None:
    facts = run(compiled("killload", tmp_path), 100, 1)
    assert facts["code"] == 0, facts["stderr"]
    assert facts["kills"] == 100
    assert facts["packets"] > 1_000
    for each in ("lost", "differ", "broken"):
        assert facts[each] == 0, each
