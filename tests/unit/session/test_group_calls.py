"""`fence` and `barrier` with a time limit: what is not complete in time is withdrawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import orcalike as orca

LONG = "90s"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[orca.Group, orca.Group]]:
    """Two members of one group, in this process."""
    with (
        orca.join(listen=f"unix:{tmp_path}/one") as first,
        orca.join(seeds=first.address, timeout=LONG) as second,
    ):
        first.fence()
        yield first, second


def test_an_arrival_that_was_late_is_withdrawn(both: tuple[orca.Group, orca.Group]) -> None:
    first, second = both
    with pytest.raises(TimeoutError, match=r"^barrier was not complete within 10ms$"):
        first.barrier(timeout="10ms")
    first.fence()  # after the withdrawal, in the order
    other = second.barrier.nowait()
    second.fence()
    assert not other.done()
    first.barrier(timeout=LONG)
    other.result(LONG)


def test_an_arrival_that_was_late_is_withdrawn_for_a_coroutine(
    both: tuple[orca.Group, orca.Group],
) -> None:
    first, second = both

    async def late() -> None:
        with pytest.raises(TimeoutError, match=r"^barrier was not complete within 0\.01 s$"):
            await first.barrier.aio(timeout=0.01)
        await first.fence.aio()

    asyncio.run(late())
    other = second.barrier.nowait()
    second.fence()
    assert not other.done()
    asyncio.run(first.barrier.aio(timeout=LONG))
    other.result(LONG)


def test_one_that_is_complete_is_no_longer_withdrawn(both: tuple[orca.Group, orca.Group]) -> None:
    first, second = both
    arrived = second.barrier.nowait()
    second.fence()
    first.barrier(timeout=LONG)
    arrived.result(LONG)
    assert not arrived.cancel()
    other = first.barrier.nowait()  # it needs both again: nothing of the first was taken back
    first.fence(timeout=LONG)
    assert not other.done()
    second.barrier(timeout=LONG)
    other.result(LONG)
