"""A replica that lacks something to run what the others ran has failed, and says what it lacks.

The writes run elsewhere; there no operation, read or barrier answers any more, rather than from a
state that no other has (promises 3 and 13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lib.processes import Facts
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


RUNS = {
    "class": [f"class-{way}" for way in WAYS],
    "installed": ["numpy-put", "zone-put", "numpy-load"],
}
"""By what the third process lacks: WHAT-WAY, each in a group of its own, in one run."""


def by_group(programs: Programs, *groups: str) -> dict[str, list[Facts]]:
    """What the ranks of one run say of each of their groups, by rank."""
    facts = programs.facts("-n", "3", "unreadable.py", *groups)
    return {group: [fact for fact in facts if fact["group"] == group] for group in groups}


@pytest.mark.parametrize("lacks", RUNS)
def test_the_replica_that_cannot_read_an_argument_serves_no_more(
    programs: Programs, lacks: str
) -> None:
    for group, (first, second, third) in by_group(programs, *RUNS[lacks]).items():
        what, way = group.split("-")
        assert third["error"].startswith("ReplicaDivergence: "), group
        assert (third["read"], third["count"]) == ("ReplicaDivergence", 0), group
        for fact in (first, second):
            assert (fact["error"], fact["read"], fact["count"]) == ("", "", COUNTS.get(way, 1)), (
                group
            )
        if way == "load":  # an operation that cannot import is no result
            begins = "ReplicaDivergence: Board.load of 'board' ended with Module"
            assert third["error"].startswith(begins)
            continue
        for said in (WAYS[way], *LACKS[what]):
            assert said in third["error"], group


def test_arrays_arrive_if_numpy_is_installed(programs: Programs) -> None:
    (facts,) = by_group(programs, "imported-put").values()
    assert [(fact["error"], fact["count"], fact["numpy"]) for fact in facts] == [("", 1, True)] * 3
