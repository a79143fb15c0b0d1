"""A member is killed where nobody launched: the others are told, and none of them hangs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cluster.conftest import Process, Programs

CALLS = {
    *("guard", "read guard", "barrier", "find", "nowait", "loop"),
    *("write", "write nowait", "fence", "share", "drop", "later guard"),
}


def check_survivor(survivor: Process, victim: str) -> None:
    """Every call of it raised NotPrimary and named the victim; reads go on; it ends well."""
    facts = [survivor.hear() for _ in range(len(CALLS) + 2)]
    calls = {fact["call"]: fact for fact in facts if "call" in fact}
    assert calls.keys() == CALLS
    for name, fact in calls.items():
        assert fact["error"] == "NotPrimary", name
        assert victim in fact["text"], name
    assert facts[-2] == {"read": 7}
    assert facts[-1] == {"left": True}
    assert survivor.end() == 0


@pytest.mark.parametrize("victim", ["member", "sequencer"])
@pytest.mark.parametrize("medium", ["unix", "tcp"])
def test_every_call_raises_and_names_the_member(
    programs: Programs, victim: str, medium: str
) -> None:
    where = f"unix:{programs.directory}/maker" if medium == "unix" else "tcp:127.0.0.1:0"
    roles = ["victim", "other", "other"] if victim == "sequencer" else ["other", "other", "victim"]
    members = [programs.start("survivor.py", "make", where, roles[0])]
    facts = [members[0].hear()]
    for role in roles[1:]:
        address = str(facts[0]["address"])
        members.append(programs.start("survivor.py", "join", address, role))
        facts.append(members[-1].hear())
    survivors = [member for member, role in zip(members, roles, strict=True) if role == "other"]
    for survivor in survivors:
        assert survivor.hear() == {"ready": True}
    lost = roles.index("victim")
    members[lost].process.send_signal(signal.SIGKILL)
    for survivor in survivors:
        check_survivor(survivor, f"rank {facts[lost]['rank']} ({facts[lost]['address']})")
