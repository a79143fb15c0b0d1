"""A group that was left has no descriptor any more, though the program keeps it: calls say so, and touch no other file."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.messages import create_group, join_group, leave_group
from orcalike.objects.lists import List
from orcalike.objects.queues import Queue
from tests.lib.programs import OVER_SOCKETS

TCP = "PACK:XFER:TOTAL:MBRSHIP:COM:tcp"


def opened() -> dict[int, str]:
    """The descriptors of this process, and of what."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the directory itself
            continue
    return found


@pytest.fixture
def before() -> dict[int, str]:
    """What was open before the test, once what the whole process keeps is there."""
    with orca.join():
        pass
    gc.collect()
    return opened()


@pytest.mark.parametrize("stack", [None, OVER_SOCKETS, TCP])
def test_groups_that_were_left_have_none(
    before: dict[int, str], tmp_path: Path, stack: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_INSECURE", "1")
    where = "tcp:127.0.0.1:0" if stack == TCP else f"unix:{tmp_path}/one"
    insecure = stack == TCP
    with orca.join(listen=where, stack=stack, insecure=insecure) as one:
        with orca.join(seeds=one.address, stack=stack, insecure=insecure) as two:
            items = two.share(List[int], "items")
            items.append(1)
        one.share(List[int], "others").append(1)
    assert opened() == before
    assert list(items) == [1]


def test_nor_has_a_group_of_one(before: dict[int, str]) -> None:
    with orca.join() as group:
        group.share(List[int], "items").append(1)
    assert opened() == before
    with pytest.raises(orca.GroupClosed):
        group.fence()


async def test_nor_has_one_on_an_event_loop(tmp_path: Path) -> None:
    known = opened()
    async with orca.join(listen=f"unix:{tmp_path}/one") as one:
        async with orca.join(seeds=one.address) as two:
            await (await two.share.aio(List[int], "items")).append.aio(1)
        await one.fence.aio()
    assert set(opened()) <= set(known)
    with pytest.raises(orca.GroupClosed):
        await two.fence.aio()


def test_nor_has_a_group_of_messages(before: dict[int, str], tmp_path: Path) -> None:
    one = create_group("g", listen=f"unix:{tmp_path}/one")
    two = join_group("g", seeds=f"unix:{tmp_path}/one")
    for each in (two, one):
        leave_group(each)
    assert opened() == before


def test_a_listener_goes_with_the_last_of_its_groups(
    before: dict[int, str], tmp_path: Path
) -> None:
    first = orca.join("first", listen=f"unix:{tmp_path}/one")
    second = orca.join("second", listen=f"unix:{tmp_path}/one")
    with first as one:
        with second as two:
            assert two.address == one.address
        with orca.join("first", seeds=one.address) as late:
            assert late.size == 2
    assert opened() == before


def test_nor_has_one_in_which_threads_have_waited(before: dict[int, str], tmp_path: Path) -> None:
    """They get GroupClosed, as those do that call it then."""
    raised: list[type[BaseException]] = []

    def run(function: Callable[[], object]) -> None:
        try:
            while True:
                function()
        except Exception as error:  # noqa: BLE001 - it is looked at below
            raised.append(type(error))

    with orca.join(listen=f"unix:{tmp_path}/one") as one, orca.join(seeds=one.address) as two:
        items, jobs = two.share(List[int], "items"), two.share(Queue[int], "jobs")
        calls: list[Callable[[], object]] = [jobs.get, lambda: items.append(1), two.fence]
        threads = [threading.Thread(target=run, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        while not items:
            pass
        two.close()
        for thread in threads:
            thread.join()
    assert raised == [orca.GroupClosed] * 3
    assert opened() == before


def test_calls_of_a_group_that_was_left_touch_no_file_that_has_its_numbers(
    before: dict[int, str], tmp_path: Path
) -> None:
    with orca.join(listen=f"unix:{tmp_path}/one") as group:
        items = group.share(List[int], "items")
        used = set(opened()) - set(before)
    pipes: list[int] = []
    while not used <= set(pipes) | set(before):
        pipes += os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    calls: list[Callable[[], Any]] = [
        group.fence,
        group.barrier,
        group.info,
        lambda: group.share(List[int], "more"),
        lambda: group.find(List[int], "items"),
        lambda: group.drop(items),
        lambda: items.append(1),
        lambda: items.append.nowait(1).result(),
    ]
    for call in calls:
        with pytest.raises(orca.GroupClosed):
            call()
    group.close()
    assert list(items) == []
    for reader in pipes[::2]:
        with pytest.raises(BlockingIOError):
            os.read(reader, 1)
    for fd in pipes:
        os.close(fd)
