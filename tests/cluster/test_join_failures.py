"""Joins that a live group does not grant: the joiner learns why, and the group is unharmed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.lib.processes import DEADLINE

if TYPE_CHECKING:
    from tests.lib.programs import Programs

LIMIT = 0.5

REFUSED: dict[str, tuple[dict[str, object], str, str]] = {
    "another group": (
        {"name": "other"},
        "JoinFailed",
        "no answer from {address} for the group 'other'",
    ),
    "another stack": (
        {"timeout": DEADLINE, "stack": "PACK(size=99):XFER:TOTAL:MBRSHIP:COM:unix"},
        "ConfigMismatch",
        "the group has stack=",
    ),
    "more members than come": ({"size": 9, "timeout": 3.0}, "JoinFailed", "in it are rank 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_joins_that_are_refused(programs: Programs, case: str) -> None:
    options, kind, words = REFUSED[case]
    maker = programs.start(
        "busy_member.py", "make", f"unix:{programs.directory}/maker", PAUSE="0.05"
    )
    address = str(maker.next_fact()["address"])
    words = words.format(address=address)
    for busy in (1, 10):  # until it is in may take longer than its limit
        given = {"seeds": address, "timeout": LIMIT, **options}
        given["timeout"] = float(str(given["timeout"])) * busy
        joiner = programs.start("joiner.py", json.dumps(given))
        facts = [joiner.next_fact() for _ in range(2)]
        if all(words in fact["text"] for fact in facts):
            break
        assert joiner.end() == 0
    assert [fact["way"] for fact in facts] == ["thread", "loop"]
    for fact in facts:
        assert fact["error"] == kind
        assert words in fact["text"]
        assert fact["took"] < DEADLINE
    assert joiner.end() == 0
    assert "Traceback" not in joiner.stderr()
    programs.call("stop")
    assert maker.next_fact()["members"] == [0]
    assert maker.end() == 0


def test_one_that_gives_up_does_not_come_in_later(programs: Programs) -> None:
    """A member is stopped while another asks to be let in, and goes on when that has given up."""
    maker = programs.start(
        "busy_member.py", "make", f"unix:{programs.directory}/maker", PAUSE="0.05"
    )
    address = str(maker.next_fact()["address"])
    maker.pause()
    joiner = programs.start("joiner.py", json.dumps({"seeds": address, "timeout": LIMIT}))
    facts = [joiner.next_fact(), joiner.next_fact()]
    assert [fact["error"] for fact in facts] == ["JoinFailed"] * 2
    assert all(f"no answer from {address}" in fact["text"] for fact in facts)
    assert joiner.end() == 0
    maker.resume()
    late = programs.start("busy_member.py", "join", address)
    late.next_fact()
    programs.call("stop")
    facts = [maker.next_fact(), late.next_fact()]
    assert facts[0]["digest"] == facts[1]["digest"]
    assert len(facts[0]["members"]) == 2
    assert (maker.end(), late.end()) == (0, 0)
