"""No operation takes more instructions than it did: no timing, so no noise.

If a change is meant to cost: `python -m tests.instructions --renew`.
"""

from __future__ import annotations

import pytest

from tests.instructions.counting import MARGIN, PLAIN, CannotCount, Counts, count, figures, unknown

OPERATIONS = sorted({name for known in figures().values() for name in known} - {PLAIN})


@pytest.fixture(scope="module")
def counts() -> Counts:
    """One run for all."""
    try:
        found = count()
    except CannotCount as error:
        pytest.skip(str(error))
    if (why := unknown(found)) is not None:
        pytest.skip(why)
    return found


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_more_instructions_than_before(counts: Counts, operation: str) -> None:
    expected, found = figures()[counts.build][operation], counts.operations[operation]
    assert found <= expected * (1 + MARGIN), (
        f"{operation}: {found:g} instructions, {expected:g} before; "
        "if that is meant to be, python -m tests.instructions --renew"
    )
