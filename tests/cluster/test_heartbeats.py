"""Where the order is in shared memory heartbeats are sent only by members that others hold up (ADR-26)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from tests.lib.programs import Programs

MEMBERS = 3


@pytest.fixture
def place() -> Iterator[str]:
    """Where they meet: sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="o", dir="/tmp") as folder:
        yield f"unix:{folder}/place"


@pytest.mark.parametrize("way", ["thread", "coroutine", "barrier"])
def test_a_stopped_member_is_left_alone_until_it_holds_another_one_up(
    programs: Programs, place: str, way: str
) -> None:
    """And as long as none is held up, no heartbeat is sent: not at rest, and not while all write."""
    programs.environment["ORCALIKE_DETECTION"] = "0.1"
    members = [programs.start("resting.py", place, str(MEMBERS), way) for _ in range(MEMBERS)]
    first = [each.next_fact() for each in members]
    sent = [fact["sent"] for fact in first]
    programs.call("write")
    assert [each.next_fact()["sent"] for each in members] == sent
    last = next(each for each, fact in zip(members, first, strict=True) if fact["rank"] == 2)
    others = [each for each in members if each is not last]
    last.pause()
    programs.call("stopped")
    facts = [each.next_fact() for each in others]
    assert [fact["size"] for fact in facts] == [MEMBERS] * 2, "after 5 times the detection time"
    assert [fact["sent"] for fact in facts] == [
        fact["sent"] for each, fact in zip(members, first, strict=True) if each is not last
    ]
    programs.call("wait")
    assert [each.next_fact() for each in others] == [{"size": MEMBERS - 1}] * 2
    assert [each.next_fact() for each in others] == [{"rests": True}] * 2
    assert [each.end() for each in others] == [0, 0]
    last.kill()
