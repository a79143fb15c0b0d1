"""What `orcalike status` and `orcalike top` say of a group that does not go on: which members, and for which they wait."""

from __future__ import annotations

from typing import Any

import pytest

from orcalike.cli.run_tables import complaints
from orcalike.launch_protocol.control_lines import Blocked, Joining, Lacks, Unblocked, encode
from orcalike.launcher.job import Job, Options
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.status import Status
from orcalike.launcher.timers import Timers

HALF, LESS = "2 of 4 members are no majority", "1 of 4 members are no majority"
DEGREE = "degree 2 takes 3 members with replicas, and the view has 1"


def without(rule: str, *missing: int | None) -> Blocked:
    return Blocked("default", tuple((100 + (role or 0), role) for role in missing), rule)


def group_of(reports: dict[int | None, Blocked | Lacks | None]) -> dict[str, Any]:
    """How a group stands whose members have joined, and then reported this; None: nothing more."""
    table = ProcessTable(Job(Options(program="", nprocs=len(reports)), "", 0))
    for role, report in reports.items():
        for each in (Joining("default", 100 + (role or 0)), Unblocked("default"), report):
            if each is not None:
                table.groups.receive(role, encode(each))
    answers: list[dict[str, Any]] = []
    Status(table, Timers()).ask(answers.append)
    (group,) = answers[0]["groups"]
    assert isinstance(group, dict)
    return group


@pytest.mark.parametrize(
    ("reports", "lines"),
    [
        ({0: None, 1: None}, []),
        (
            {0: None, 1: None, 2: without(LESS, 1, 0)},
            [f"rank 2 is blocked, and waits for rank 0 and rank 1: {LESS}"],
        ),
        (
            {0: without(HALF, 10, 2), 1: without(HALF, 2, 10), 2: None, 10: None},
            [f"rank 0 and rank 1 are blocked, and wait for rank 2 and rank 10: {HALF}"],
        ),
        (
            {0: without(LESS, 1), 1: without(LESS, None), None: without(LESS, 1)},
            [
                f"rank 0 and the witness are blocked, and wait for rank 1: {LESS}",
                f"rank 1 is blocked, and waits for the witness: {LESS}",
            ],
        ),
        (
            {0: without(LESS)},
            [f"rank 0 is blocked: {LESS}; each member that is missing has ended"],
        ),
        (
            {0: Lacks("default", 3, DEGREE), 1: None, 2: Lacks("default", 3, DEGREE)},
            [f"rank 0 and rank 2 wait: {DEGREE}"],
        ),
    ],
    ids=["none", "one", "two", "apart", "ended", "degree"],
)
def test_members_that_do_not_go_on_are_named(
    reports: dict[int | None, Blocked | Lacks | None], lines: list[str]
) -> None:
    assert complaints(group_of(reports)) == lines


def test_the_members_that_a_group_misses_are_in_the_order_of_their_ranks() -> None:
    group = group_of({0: without(LESS, 10, 2, None), 1: without(LESS, 3)})
    assert group["missing"] == ["rank 2", "rank 3", "rank 10", "the witness"]
