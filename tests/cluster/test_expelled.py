"""A member that was cut off for too long is expelled, and joins again: two groups in one process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.transport.drivers.pump import Pump
from tests.cluster.conftest import DEADLINE
from tests.zoo import Counter, Journal


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def sever(pump: Pump, whom: list[str], now: int) -> None:
    """Be cut off from these addresses."""
    pump.sever(whom)


def cut(first: orca.Group, second: orca.Group, *, apart: bool) -> None:
    """Cut two members apart, or connect them again."""
    for one, other in ((first, second), (second, first)):
        whom = [other.address] if apart else []
        pump = one._endpoint.pump
        pump.call(partial(sever, pump, whom))


def expel(first: orca.Group, second: orca.Group) -> None:
    """Half of a view goes on with its oldest member, without the other (H1)."""
    number = second.view.number
    cut(first, second, apart=True)
    until(lambda: first.size == 1)
    cut(first, second, apart=False)
    until(lambda: second._endpoint.expelled)
    assert second.view.number == number


@pytest.fixture
def groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[orca.Group, orca.Group]]:
    """The first member, and one that joined it."""
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.1")
    with ExitStack() as stack:
        first = stack.enter_context(orca.join(listen=f"unix:{tmp_path}/group"))
        second = stack.enter_context(orca.join(seeds=first.address, size=2, timeout=DEADLINE))
        yield first, second


def test_calls_raise_and_objects_show_their_last_state(
    groups: tuple[orca.Group, orca.Group],
) -> None:
    first, second = groups
    counters = [group.share(Counter, "counter") for group in groups]
    counters[1].add(3)
    expel(first, second)
    counters[0].add(4)
    assert counters[1].get() == 3
    for call in (
        lambda: counters[1].add(1),
        lambda: counters[1].add.nowait(1),
        second.fence,
        second.barrier,
        lambda: second.share(Counter, "another"),
    ):
        with pytest.raises(orca.Expelled, match=r"group\.rejoin\(\)"):
            call()
    with pytest.raises(orca.OrcalikeError, match="not expelled"):
        first.rejoin()


def test_what_is_under_way_ends(groups: tuple[orca.Group, orca.Group]) -> None:
    first, second = groups
    journals = [group.share(Journal, "journal", 0) for group in groups]
    ended: list[type[Exception]] = []

    def wait() -> None:
        try:
            journals[1].get()
        except orca.OrcalikeError as error:
            ended.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    expel(first, second)
    thread.join(DEADLINE)
    assert ended == [orca.Expelled]


def test_rejoin_brings_the_objects_up_to_date(groups: tuple[orca.Group, orca.Group]) -> None:
    first, second = groups
    mine, theirs = (group.share(Counter, "counter") for group in (second, first))
    dropped = second.share(Counter, "dropped")
    mine.add(3)
    rank, incarnation = second.rank, second.me.incarnation
    for turn in range(2):  # once more, as another incarnation again
        expel(first, second)
        theirs.add(4)
        if turn == 0:
            first.drop(first.find(Counter, "dropped"))
            fresh = first.share(Counter, "fresh")
            fresh.add(9)
        second.rejoin(timeout=DEADLINE)
        assert mine.get() == 3 + 4 * (turn + 1) + turn
        assert second.rank == rank
        assert second.me.incarnation != incarnation
        assert second.find(Counter, "counter") is mine
        mine.add(1)
        first.fence()
        assert theirs.get() == mine.get()
        with pytest.raises(orca.ObjectDropped):
            dropped.add(1)
        assert second.find(Counter, "fresh").get() == 9
    first.fence()
    assert [group.size for group in groups] == [2, 2]


def test_rejoin_with_nobody_there(groups: tuple[orca.Group, orca.Group]) -> None:
    """It may be tried again."""
    first, second = groups
    counter = second.share(Counter, "counter")
    counter.add(3)
    expel(first, second)
    cut(first, second, apart=True)
    with pytest.raises(orca.JoinFailed):
        second.rejoin(timeout=0.3)
    with pytest.raises(orca.Expelled):
        counter.add(1)
    assert counter.get() == 3
    cut(first, second, apart=False)
    second.rejoin(timeout=DEADLINE)
    assert counter.add(1) == 4


def test_rejoin_on_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.1")

    async def take_part(first: orca.Group) -> None:
        async with orca.join(seeds=first.address, size=2, timeout=DEADLINE) as second:
            counter = await second.share.aio(Counter, "counter")
            await counter.add.aio(3)
            await asyncio.to_thread(expel, first, second)
            with pytest.raises(orca.Expelled):
                await counter.add.aio(1)
            await second.rejoin.aio(timeout=DEADLINE)
            assert await counter.add.aio(1) == 4

    with orca.join(listen=f"unix:{tmp_path}/group") as first:
        asyncio.run(take_part(first))
        first.fence()
        assert first.find(Counter, "counter").get() == 4
