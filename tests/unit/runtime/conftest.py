"""Whatever a runtime promises it promises over both orders: through a sequencer, and in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import orcalike as orca


@pytest.fixture
def group(order: str) -> Iterator[orca.Group]:
    """A group of this process alone."""
    with orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as joined:
        yield joined


@pytest.fixture
def with_stable(order: str) -> str:
    """A stack that knows what was applied where."""
    return f"PACK:STABLE:XFER:{order}:MBRSHIP:COM:unix"
