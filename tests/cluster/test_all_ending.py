"""All ranks of a run end at once, and with `--restart` it goes on with all that was acknowledged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Programs

MiB = 1 << 20


@pytest.mark.parametrize(
    "how", [[], ["--sequencer", "witness"], ["--tcp"]], ids=["memory", "sockets", "tcp"]
)
@pytest.mark.parametrize("size", [0, 20])
def test_a_run_comes_back_when_all_ranks_have_ended(
    programs: Programs, how: list[str], size: int
) -> None:
    """Twice; with 20 MiB of objects as well, so that the members have given their state anew."""
    result = programs.run("-n3", "--restart", "2", *how, "all_ending.py", SIZE=str(size))
    assert result.returncode == 0, result.stderr
    (facts,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert facts["whole"]
    assert facts["disorder"] == []
    assert facts["passed"] == 0
    assert facts["left"] == [0, 0, 1, 1, 2, 2]
    assert facts["sizes"] == [MiB] * size
