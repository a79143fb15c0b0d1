"""`group.views()` and `aviews()` begin with the call, and end when the group is left."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import orcalike as orca
from orcalike.session.kept_views import KeptViews
from orcalike.transport.record import replaced


def number_of_views(group: orca.Group) -> int:
    return sum(1 for _ in group.views())


async def number_of_async_views(group: orca.Group) -> int:
    return len([view async for view in group.aviews()])


def test_after_leaving_there_are_none() -> None:
    group = orca.connect(size=1)
    made_before = group.views()
    group.close()
    assert list(made_before) == []
    assert number_of_views(group) == 0
    assert asyncio.run(number_of_async_views(group)) == 0


def test_what_comes_before_the_first_is_asked_for_is_there() -> None:
    group = orca.connect(size=1)
    views, in_coroutine = group.views(), group.aviews()
    for listener in list(group._session.on_view):
        listener(replaced(group.view, number=2))
    group.close()

    async def read() -> list[int]:
        return [view.number async for view in in_coroutine]

    assert [view.number for view in views] == [2]
    assert asyncio.run(read()) == [2]


async def test_a_loop_that_waits_for_the_next_view_runs() -> None:
    """Also after it had to wait for one."""
    listeners: list[Callable[[orca.View | None], None]] = []
    kept = KeptViews(listeners)

    async def read() -> list[int]:
        return [each.number async for each in kept.read_on_loop()]

    view = orca.View(1, 1, 0, (orca.Member("", 1, 0),))
    reading = asyncio.create_task(read())
    for number in (2, 3):
        for _ in range(10):
            await asyncio.sleep(0)  # other tasks have their turns
        listeners[0](replaced(view, number=number))
    listeners[0](None)
    assert await reading == [2, 3]


def test_an_iterator_that_was_let_go_is_no_listener_any_more() -> None:
    group = orca.connect(size=1)
    listeners, before = group._session.on_view, len(group._session.on_view)
    group.views()
    group.aviews()
    assert len(listeners) == before + 2
    for listener in list(listeners):
        listener(replaced(group.view, number=2))
    assert len(listeners) == before
    group.close()


def test_readers_that_wait_go_on_when_the_group_is_left() -> None:
    group = orca.connect(size=1)
    listeners, before = group._session.on_view, len(group._session.on_view)
    found: list[int] = []
    readers = [
        threading.Thread(target=lambda: found.append(number_of_views(group))),
        threading.Thread(target=lambda: found.append(asyncio.run(number_of_async_views(group)))),
    ]
    for reader in readers:
        reader.start()
    deadline = time.monotonic() + 60
    while len(listeners) < before + 2:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    for listener in list(listeners):
        listener(replaced(group.view, number=2))
    group.close()
    for reader in readers:
        reader.join(60)
    assert found == [1, 1]
