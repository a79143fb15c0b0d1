"""One order for all (promises 1 to 3, 7 and 10), with real processes and sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lib.orders import IN_MEMORY, OVER_RANK, OVER_WITNESS

if TYPE_CHECKING:
    from tests.lib.programs import Programs

WRITES = 1_500


@pytest.mark.parametrize(
    "order",
    [("--unix", *OVER_WITNESS), ("--tcp", *OVER_RANK), IN_MEMORY],
    ids=["witness", "rank", "memory"],
)
def test_four_writers_make_one_history(programs: Programs, order: tuple[str, ...]) -> None:
    facts = programs.facts(*order, "-n", "4", "writers.py", str(WRITES))
    assert len(facts) == 4
    assert facts[0]["count"] > 4 * WRITES
    for key in ("count", "digest", "states"):
        assert len({str(fact[key]) for fact in facts}) == 1, key
    for fact in facts:
        assert fact["unseen"] == 0, "a write was not visible to its writer after it completed"
        assert fact["late"] == 0, "a later write of a member was visible before an earlier one"
        assert fact["disorder"] == [[], [], []]
        assert fact["missed"] == []


def test_bounded_buffer_loses_nothing(programs: Programs) -> None:
    items = 200
    facts = programs.facts("-n", "4", "buffer.py", str(items))
    got = [tuple(item) for fact in facts for item in fact["got"]]
    assert sorted(got) == [(rank, number) for rank in (0, 2) for number in range(items)]
    for key in ("digest", "wakes"):
        assert len({str(fact[key]) for fact in facts}) == 1, key
    assert {fact["fullest"] for fact in facts} == {3}
