"""Whatever a runtime promises it promises over both orders: through a sequencer, and in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import orcalike as orca


@pytest.fixture(params=["TOTAL", "RING"])
def group(request: pytest.FixtureRequest) -> Iterator[orca.Group]:
    """A group of this process alone."""
    with orca.join(stack=f"PACK:XFER:{request.param}:MBRSHIP:COM:unix") as joined:
        yield joined
