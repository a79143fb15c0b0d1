"""Real processes, one of which comes to another state: it is found, named, and serves no more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Programs


@pytest.mark.parametrize(("check", "objects"), [("", "1"), ("", "40"), ("hash", "2")])
def test_the_process_that_differs_serves_no_more(
    programs: Programs, check: str, objects: str
) -> None:
    result = programs.run("-n", "3", "diverging.py", objects, ORCALIKE_CHECK=check)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    first, second, odd = sorted(lines, key=lambda fact: int(fact["rank"]))
    for fact in (first, second):
        assert (fact["error"], fact["read"]) == ("", "")
    assert odd["error"].startswith("ReplicaDivergence: ")
    assert odd["read"] == "ReplicaDivergence"
    assert odd["value"] >= 1  # after group.rejoin()
    name = f"'tally {int(objects) - 1}'"
    members = odd["members"]
    for said in (name, "between", "of the order", "ran: ", "add_oddly"):
        assert said in odd["error"]
    assert f"{members[0]} and {members[1]}; {members[2]}" in odd["error"]
    assert f"{members[2]} will serve no more; this member goes on" in result.stderr
