"""No operation takes more instructions than it did: no timing, so no noise.

If a change is meant to cost: `python -m tests.instructions --renew`.
"""

from __future__ import annotations

import pytest

from tests.instructions.counting import (
    MARGIN,
    PLAIN,
    CannotCount,
    Counts,
    count,
    figures,
    least,
    unknown,
)

OPERATIONS = sorted({name for known in figures().values() for name in known} - {PLAIN})


RUNS = 5
"""At the most: names may share a place in a cache, and what is interrupted is timed more closely."""


def is_more(counts: Counts, operation: str) -> bool:
    """Whether it takes more than it did."""
    return counts.operations[operation] > figures()[counts.build][operation] * (1 + MARGIN)


@pytest.fixture(scope="module")
def counts() -> Counts:
    """One run for all, and others if an operation took more."""
    try:
        found = count()
        if (why := unknown(found)) is not None:
            pytest.skip(why)
        for layout in range(1, RUNS):
            if not any(is_more(found, operation) for operation in OPERATIONS):
                break
            found = least(found, count(layout))
    except CannotCount as error:
        pytest.skip(str(error))
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_more_instructions_than_before(counts: Counts, operation: str) -> None:
    expected, found = figures()[counts.build][operation], counts.operations[operation]
    assert not is_more(counts, operation), (
        f"{operation}: {found:g} instructions, {expected:g} before; "
        "if that is meant to be, python -m tests.instructions --renew"
    )
