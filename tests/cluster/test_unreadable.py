"""A replica that lacks something to run what the others ran has failed, and says what it lacks.

The writes run elsewhere; there no operation, read or barrier answers any more, rather than from a
state that no other has (promises 3 and 13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.programs import Programs

WAYS = {
    "put": "argument 1 of Board.put of 'board'",
    "put_named": "argument 1 of Board.put_named of 'board'",
    "put_when": "argument 1 of Board.put_when of 'board'",
    "put_slowly": "argument 1 of Board.put_slowly of 'board'",
    "atomic": "argument 3 of atomic unreadable:put_both",
    "share": "argument 1 of Board.__init__ of 'third'",
}
LACKS = {
    "class": ("unreadable:Point", "import the module that registers it"),
    "numpy": ("NumPy array", "install it for all processes"),
    "zone": ("'Europe/Paris'", "install the package tzdata"),
}
COUNTS = {"share": 0}


@pytest.mark.parametrize(
    ("lack", "way"), [("class", way) for way in WAYS] + [("numpy", "put"), ("zone", "put")]
)
def test_the_replica_that_cannot_read_an_argument_serves_no_more(
    programs: Programs, lack: str, way: str
) -> None:
    first, second, third = programs.facts("-n", "3", "unreadable.py", lack, way)
    for fact in (first, second):
        assert (fact["error"], fact["read"], fact["count"]) == ("", "", COUNTS.get(way, 1))
    assert third["error"].startswith("ReplicaDivergence: ")
    for said in (WAYS[way], *LACKS[lack]):
        assert said in third["error"]
    assert (third["read"], third["count"]) == ("ReplicaDivergence", 0)


def test_an_operation_that_cannot_import_is_no_result(programs: Programs) -> None:
    first, second, third = programs.facts("-n", "3", "unreadable.py", "numpy", "load")
    assert [fact["count"] for fact in (first, second)] == [1, 1]
    assert third["error"].startswith("ReplicaDivergence: Board.load of 'board' ended with Module")


def test_arrays_arrive_if_numpy_is_installed(programs: Programs) -> None:
    facts = programs.facts("-n", "3", "unreadable.py", "imported", "put")
    assert [(fact["error"], fact["count"], fact["numpy"]) for fact in facts] == [("", 1, True)] * 3
