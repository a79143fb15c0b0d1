"""`fence` and `barrier` with a time limit: what is not complete in time is withdrawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from tests.lib.shared_classes import Counter

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


WRONG_LIMITS = [("soon", ValueError), (-1, ValueError), ([], TypeError)]


@pytest.mark.parametrize(("limit", "error"), WRONG_LIMITS)
def test_a_limit_that_is_no_duration_is_refused_before_an_arrival_is_sent(
    both: tuple[orca.Group, orca.Group], limit: Any, error: type[Exception]
) -> None:
    first, second = both
    with pytest.raises(error, match=r"soon|time limit"):
        first.barrier(timeout=limit)
    with pytest.raises(error, match=r"soon|time limit"):
        asyncio.run(first.barrier.aio(timeout=limit))
    other = second.barrier.nowait()
    first.fence()  # what was sent before it is here
    second.fence()
    assert not other.done()
    first.barrier(timeout=LONG)
    other.result(LONG)


@pytest.mark.parametrize(("limit", "error"), WRONG_LIMITS)
def test_a_limit_that_is_no_duration_is_refused_though_the_outcome_is_here_at_once(
    limit: Any, error: type[Exception]
) -> None:
    with orca.join("alone") as group:
        group.share(Counter, "counter")
        for call in (
            lambda: group.barrier(timeout=limit),
            lambda: group.fence(timeout=limit),
            lambda: group.find(Counter, "counter", timeout=limit),
        ):
            with pytest.raises(error, match=r"soon|time limit"):
                call()
