"""Members in containers that share the directory in which they meet: in process namespaces of their own.

Each is the first process there, so a number of a process means another one to each of them.
"""

from __future__ import annotations

import pytest

from tests.lib.namespaces import in_namespace
from tests.lib.programs import OVER_SOCKETS, Programs

MEMORY_ALONE = "PACK:XFER:RING:MBRSHIP:COM:unix"


@pytest.mark.parametrize("stack", [None, OVER_SOCKETS], ids=["memory", "unix"])
def test_members_in_process_namespaces_of_their_own(programs: Programs, stack: str | None) -> None:
    """They have one order, see each other's deaths, and go on."""
    if stack is not None:
        programs.environment["STACK"] = stack
    container = in_namespace("--kill-child", "--pid", "--fork", "--mount-proc")
    members = [programs.start_in(container, "contained.py", name) for name in ("a", "b", "c")]
    assert [member.next_fact() for member in members] == [{"process": 1, "size": 3}] * 3
    members[0].kill()
    assert [member.next_fact()["size"] for member in members[1:]] == [2, 2]
    programs.call("stop")
    logs = [member.next_fact()["log"] for member in members[1:]]
    assert logs[0] == logs[1]
    assert {writer for writer, _ in logs[0]} == set(map(ord, "abc"))
    assert [member.end() for member in members[1:]] == [0, 0]


@pytest.mark.parametrize("stack", [None, MEMORY_ALONE], ids=["order", "memory alone"])
def test_a_user_namespace_of_its_own(programs: Programs, stack: str | None) -> None:
    """No process there may look into one outside: it shares the order by a sequencer, or it learns why it cannot join."""
    if stack is not None:
        programs.environment["STACK"] = stack
    container = in_namespace("--kill-child", "--user", "--map-root-user")
    group = programs.start("contained.py", "a", SIZE="1")
    assert group.next_fact()["size"] == 1
    other = programs.start_in(container, "contained.py", "b", SIZE="1")
    outcome = other.next_fact()
    writers = {ord("a")}
    if stack is None:
        assert outcome["size"] == 2
        assert group.next_fact()["size"] == 2
        writers.add(ord("b"))
    else:
        assert outcome["error"] == "JoinFailed"
        assert "If it is of another user or user namespace" in str(outcome["text"])
    programs.call("stop")
    while "log" not in (fact := group.next_fact()):
        pass  # it may have been in the view for a moment
    assert {writer for writer, _ in fact["log"]} == writers
    assert group.end() == 0
