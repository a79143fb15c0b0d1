"""The same program under `python` and `orcalike run`, with threads, coroutines, and both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.lib.programs import complaints

if TYPE_CHECKING:
    from tests.lib.processes import Facts
    from tests.lib.programs import Programs

ITEMS = 150
MODES = ["sync", "async", "mixed", "looped"]


def check(facts: list[Facts], size: int) -> None:
    assert len(facts) == size
    for fact in facts:
        assert fact["members"] == size
        assert fact["entries"] == size * ITEMS
        assert fact["puts"] == [["put", rank, n] for rank in range(size) for n in range(ITEMS)]
        assert fact["fullest"] <= 2
        assert (fact["wakes"], fact["log"]) == (facts[0]["wakes"], facts[0]["log"])


def check_modes(facts: list[Facts], size: int) -> None:
    """Check what the ranks say of each mode, which has had a group of its own."""
    for mode in MODES:
        check([fact for fact in facts if fact["mode"] == mode], size)


def test_alone(programs: Programs) -> None:
    result = programs.python("modes.py", *MODES)
    assert (result.returncode, complaints(result.stderr)) == (0, "")
    check_modes([json.loads(line) for line in result.stdout.splitlines()], 1)


@pytest.mark.parametrize("size", [1, 3])
def test_launched(programs: Programs, size: int) -> None:
    check_modes(programs.facts("-n", str(size), "modes.py", *MODES), size)
