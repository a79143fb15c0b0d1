"""All ranks of a run end at once, and with `--restart` it goes on with all that was acknowledged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Programs

MiB = 1 << 20


STABLE = "PACK:STABLE:XFER:RING:MBRSHIP:COM:unix"


@pytest.mark.parametrize(
    "how",
    [[], ["--sequencer", "witness"], ["--tcp"], ["--stack", STABLE]],
    ids=["memory", "sockets", "tcp", "stable"],
)
@pytest.mark.parametrize("size", [0, 20])
def test_a_run_comes_back_when_all_ranks_have_ended(
    programs: Programs, how: list[str], size: int
) -> None:
    """Twice; with 20 MiB of objects as well, so that the members have given their state anew."""
    check_coming_back(programs, how, size)


@pytest.mark.parametrize("degree", ["1", "2"])
def test_a_degree_does_not_keep_a_run_in_memory_from_coming_back(
    programs: Programs, degree: str
) -> None:
    """The witness holds what is in memory, as each member does."""
    check_coming_back(programs, [], 0, DEGREE=degree)


def check_coming_back(programs: Programs, how: list[str], size: int, **environment: str) -> None:
    """All ranks end twice; all that they knew to be written is there in the end, at each of them."""
    arguments = ["-n3", "--restart", "2", *how, "all_ending.py"]
    result = programs.run(*arguments, SIZE=str(size), **environment)
    assert result.returncode == 0, result.stderr
    (facts,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert facts["whole"]
    assert facts["disorder"] == []
    assert facts["passed"] == 0
    assert facts["left"] == [0, 0, 1, 1, 2, 2]
    assert facts["sizes"] == [MiB] * size


@pytest.mark.parametrize("how", [[], ["--tcp"]], ids=["memory", "tcp"])
def test_messages_of_the_time_before_are_not_received(programs: Programs, how: list[str]) -> None:
    """A process that comes back gets what is sent from then on, all of it."""
    for facts in programs.facts("-n2", "--restart", "1", *how, "messages_all_ending.py"):
        assert facts["lives"] == ["1"]
        assert facts["count"] == 40
