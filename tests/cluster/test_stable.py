"""`options(stable=k)` with real processes: it returns when k members have applied the write (H68)."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Programs


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("order", "medium", "maker"),
    [
        ("TOTAL", "unix", "writer"),
        ("TOTAL", "tcp", "slow"),
        ("RING", "unix", "writer"),
        ("RING", "unix", "slow"),
    ],
)
def test_it_waits_for_the_slowest(programs: Programs, order: str, medium: str, maker: str) -> None:
    programs.environment["ORDER"] = order
    where = (
        f"unix:{programs.directory}/maker" if medium == "unix" else f"tcp:127.0.0.1:{free_port()}"
    )
    roles = [maker, *sorted({"writer", "other", "slow"} - {maker})]
    members = {
        role: programs.start("ledger.py", role, "join" if role != maker else "make", where)
        for role in roles
    }
    writer = members["writer"]
    first = writer.next_fact()
    assert (first["result"], first["made"]) == (1, 2)
    limited = writer.next_fact()
    assert limited["outcome"] == "unknown"
    assert "3 members had applied it" in limited["text"]
    waiting = writer.next_fact()
    assert waiting["pending"] is False
    one, two, three = waiting["levels"]
    assert one >= two > three
    programs.call("go")
    last = writer.next_fact()
    assert (last["result"], last["made"]) == (2, 3)
    rows = [member.next_fact()["rows"] for member in members.values()]
    assert rows[0] == rows[1] == rows[2]
    for member in members.values():
        assert member.end() == 0, member.stderr()
        assert member.complaints() == ""
