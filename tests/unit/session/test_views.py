"""`group.views()` and `aviews()` end when the group is left, whenever they were begun."""

from __future__ import annotations

import asyncio
import threading
import time

import orcalike as orca
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
