"""Waiting for what happens to a group: the log says again and again what a wait is for."""

from __future__ import annotations

import asyncio

import pytest

from orcalike.runtime import waits
from orcalike.session import waiting
from orcalike.session.waiting import Waiting
from orcalike.transport.drivers.driver import Waitable
from tests.lib.time_limits import LIMIT


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the log says."""
    monkeypatch.setattr(waiting, "SAY_EVERY", 0.01)
    return []


@pytest.fixture
def group(said: list[str]) -> Waiting:
    """What the threads and coroutines of a group wait with."""
    return Waiting(Waitable.wait, said.append)


def test_a_thread_says_each_time_what_it_waits_for(group: Waiting, said: list[str]) -> None:
    assert group.wait(lambda: len(said) >= 3, None, "to see")
    assert said == ["to see"] * 3
    assert not waits.waiting


async def test_so_does_a_coroutine(group: Waiting, said: list[str]) -> None:
    def looks() -> bool:
        if len(said) < 3:
            asyncio.get_running_loop().call_later(0.005, group.notify)
        return len(said) >= 3

    assert await group.wait_on_loop(looks, None, "to see")
    assert said == ["to see"] * 3
    await asyncio.sleep(0.05)
    assert said == ["to see"] * 3, "it waits no more"


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_only_a_thread_without_a_limit_does_the_work_of_others_meanwhile(
    limit: float | None,
) -> None:
    """What it runs for them may not end."""
    works: list[float | None] = []

    def attend(changed: Waitable, seconds: float | None) -> bool:
        works.append(seconds)
        return changed.wait(seconds)

    group = Waiting(attend, lambda what: None)
    tries = iter([False, True])

    def look() -> bool:
        group.notify()
        return next(tries)

    assert group.wait(look, limit, "to see")
    assert len(works) == (limit is None)


@pytest.mark.parametrize("comes", [True, False])
async def test_none_that_has_waited_is_woken_again(group: Waiting, comes: bool) -> None:
    """However often it looked; the loop of a coroutine may be closed by then."""
    looked = 0

    def look() -> bool:
        nonlocal looked
        looked += 1
        if looked < 4:
            group.notify()
        return comes and looked >= 4

    limit = LIMIT if comes else 0.01
    assert await asyncio.to_thread(group.wait, look, limit, "in a thread") is comes
    assert group._watchers == []
    looked = 0
    assert await group.wait_on_loop(look, limit, "on the loop") is comes
    assert group._watchers == []
