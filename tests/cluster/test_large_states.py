"""State of any size comes to joiners, whole, and kills no member that gives it."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Program, Programs


MiB = 1 << 20


def keeper(programs: Programs, how: str, address: str, what: str) -> Program:
    return programs.start("keeper.py", how, address, what)


@pytest.mark.parametrize("what", ["arguments", "dropped", "large", "calls"])
def test_a_large_state_is_given_on_and_survives_its_givers(programs: Programs, what: str) -> None:
    """17 objects made of 1 MiB each; 4,500 of 4 kB that were ended; one of 40 MiB; 5,000 calls of 4 kB.

    Each joiner gets it from the one before, which is killed then; writes go on meanwhile.
    """
    maker = keeper(programs, "make", f"unix:{programs.directory}/maker", what)
    address = str(maker.next_fact()["address"])
    boxes = maker.next_fact()["boxes"]
    first = keeper(programs, "join", address, what)
    assert first.next_fact() == {"joined": 2}
    assert first.next_fact()["boxes"] == boxes
    second = keeper(programs, "join", address, what)
    assert second.next_fact() == {"joined": 3}
    assert second.next_fact()["boxes"][0]["parts"] == boxes[0]["parts"] + 3 * (what == "calls")
    programs.call("stop")
    level = maker.next_fact()["level"]
    maker.process.send_signal(signal.SIGKILL)
    programs.call("count")
    levels = sorted(each.next_fact()["level"] for each in (first, second))
    assert levels == [level + 1, level + 2]
    programs.call("leave")
    for each in (first, second):
        assert each.end() == 0, each.stderr()
        assert each.complaints() == ""


@pytest.mark.parametrize("degree", [1, 2])
def test_a_kill_under_restart_loses_nothing_acknowledged(programs: Programs, degree: int) -> None:
    """Each rank that is started again gets 17 MiB of constructor arguments' worth of objects."""
    result = programs.run("-n3", "--restart", "2", "restarted.py", DEGREE=str(degree))
    assert result.returncode == 0, result.stderr
    (facts,) = [json.loads(line) for line in result.stdout.splitlines()]
    assert facts["sizes"] == [MiB]
    assert facts["found"] == facts["acknowledged"]
