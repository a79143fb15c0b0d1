"""A member that was cut off for too long is expelled, and joins again: two groups in one process."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

import orcalike as orca
from orcalike import messages
from orcalike.session.deadline import Deadline
from orcalike.session.entering import Entering
from orcalike.session.session import Session
from orcalike.transport.drivers import partition
from orcalike.transport.drivers.pump import Pump
from tests.lib.held_up import held_up
from tests.lib.processes import DEADLINE, until
from tests.lib.shared_classes import Counter, Journal
from tests.lib.time_limits import LIMIT, Clock


def sever(pump: Pump, addresses: list[str], now: int) -> None:
    """Be cut off from these addresses."""
    partition.sever(pump, addresses)


def cut(first: orca.Group, second: orca.Group, *, apart: bool) -> None:
    """Cut two members apart, or connect them again."""
    for one, other in ((first, second), (second, first)):
        addresses = [other.address] if apart else []
        pump = one._session.pump
        pump.call(partial(sever, pump, addresses))


def expel(first: orca.Group, second: orca.Group) -> None:
    """Half of a view goes on with its oldest member, without the other (H1)."""
    number = second.view.number
    with held_up(first):
        cut(first, second, apart=True)
        until(lambda: first.size == 1)
    cut(first, second, apart=False)
    until(lambda: second._session.expelled)
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


def test_one_that_was_expelled_and_has_left_is_like_any_that_has_left(
    groups: tuple[orca.Group, orca.Group],
) -> None:
    first, second = groups
    counter = second.share(Counter, "counter")
    expel(first, second)
    second.close()
    for call in (
        lambda: counter.add(1),
        second.fence,
        lambda: second.share(Counter, "another"),
        second.rejoin,
    ):
        with pytest.raises(orca.GroupClosed):
            call()


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


def test_rejoin_without_a_live_member(groups: tuple[orca.Group, orca.Group]) -> None:
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


class Entry:
    """A join in a thread of its own, which waits until the group has three members."""

    def __init__(self, first: orca.Group, timeout: float = DEADLINE) -> None:
        self.group: orca.Group | None = None
        self.error: orca.OrcalikeError | None = None
        self._joining = orca.join(seeds=first.address, size=3, timeout=timeout)
        self._thread = threading.Thread(target=self._join)
        self._thread.start()
        until(lambda: first.size == 2)
        until(lambda: self.now.view is not None)

    def _join(self) -> None:
        try:
            self.group = self._joining.__enter__()
        except orca.OrcalikeError as error:
            self.error = error

    @property
    def now(self) -> Session:
        """Its session, on its way in."""
        assert self._joining._group is not None
        return self._joining._group._session

    def end(self) -> orca.Group:
        """The group, when it has joined."""
        self._thread.join(DEADLINE)
        assert self.error is None
        assert self.group is not None
        return self.group

    def leave(self) -> None:
        """Leave, if it is in."""
        self._thread.join(DEADLINE)
        if self.group is not None:
            self._joining.__exit__(None, None, None)


def sever_both(first: Session, second: Session, *, apart: bool) -> None:
    """Cut two sessions apart, or connect them again."""
    for one, other in ((first, second), (second, first)):
        one.pump.call(partial(sever, one.pump, [other.address] if apart else []))


def expel_joiner(first: orca.Group, joiner: Session) -> None:
    """The group goes on without a joiner whose `join` has not returned, and lets it in again."""
    before = joiner.stack.me.incarnation
    with held_up(first):
        sever_both(first._session, joiner, apart=True)
        until(lambda: first.size == 1)
    sever_both(first._session, joiner, apart=False)
    until(lambda: joiner.stack.me.incarnation != before)
    until(lambda: first.size == 2)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[orca.Group]:
    """The first member of a group."""
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.1")
    with orca.join(listen=f"unix:{tmp_path}/group") as first:
        yield first


def test_one_that_is_expelled_while_it_joins_asks_again(alone: orca.Group) -> None:
    """The program does not notice: there was nothing yet that it could have lost."""
    theirs = alone.share(Counter, "counter")
    theirs.add(3)
    entry = Entry(alone)
    for _ in range(2):
        expel_joiner(alone, entry.now)
    theirs.add(4)
    with orca.join(seeds=alone.address, size=3, timeout=DEADLINE) as third:
        second = entry.end()
        mine = second.share(Counter, "counter")
        assert mine.add(1) == 8
        assert theirs.add(1) == 9
        assert third.share(Counter, "counter").add(1) == 10
        second.fence()
        assert mine.get() == 10
        assert second.me in alone.members
        assert second._session.exit_reason is None
        entry.leave()


def test_the_rank_of_one_that_is_expelled_while_it_joins_is_free(alone: orca.Group) -> None:
    """It had not asked for that rank, and the program never saw it."""
    entry = Entry(alone)
    with held_up(alone):
        sever_both(alone._session, entry.now, apart=True)
        until(lambda: alone.size == 1)
    third = Entry(alone)
    sever_both(alone._session, entry.now, apart=False)
    assert {entry.end().rank, third.end().rank} == {1, 2}
    assert third.end().rank == 1
    third.leave()
    entry.leave()


def test_a_coroutine_that_is_expelled_while_it_joins_asks_again(alone: orca.Group) -> None:
    theirs = alone.share(Counter, "counter")

    async def take_part() -> None:
        joining = orca.join(seeds=alone.address, size=3, timeout=DEADLINE)
        entering = asyncio.create_task(joining.__aenter__())
        await asyncio.to_thread(until, lambda: alone.size == 2)
        assert joining._group is not None
        await asyncio.to_thread(expel_joiner, alone, joining._group._session)
        async with orca.join(seeds=alone.address, size=3, timeout=DEADLINE):
            second = await entering
            counter = await second.share.aio(Counter, "counter")
            assert await counter.add.aio(4) == 4
            await joining.__aexit__(None, None, None)

    asyncio.run(take_part())
    assert theirs.add(1) == 5


def receive_all(group: messages.MessageGroup) -> None:
    """Receive until it is left: one that waits notices others that are silent."""
    with suppress(orca.GroupClosed):
        while True:
            messages.receive_from_group(group)


def test_a_group_of_messages_is_joined_again_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had received belongs to a membership that the program never had."""
    monkeypatch.setenv("ORCALIKE_DETECTION", "0.1")
    chat = messages.create_group(listen=f"unix:{tmp_path}/chat")
    address = chat._session.address
    options = chat._session.options.replace(how="seeds", seeds=(address,), listen="", size=3)
    second, third = messages.MessageGroup(options), messages.MessageGroup(options)
    threads = [
        threading.Thread(target=Entering(group._session).join, args=(Deadline(None),))
        for group in (second, third)
    ]
    threads[0].start()
    first = chat._session
    until(lambda: first.view is not None and len(first.view.members) == 2)
    messages.send_to_group(chat, b"before")
    until(lambda: second._inbox.events)
    before = second._session.stack.me.incarnation
    receiving = threading.Thread(target=receive_all, args=(chat,))
    receiving.start()
    sever_both(first, second._session, apart=True)
    until(lambda: first.view is not None and len(first.view.members) == 1)
    sever_both(first, second._session, apart=False)
    until(lambda: second._session.stack.me.incarnation != before)
    until(lambda: first.view is not None and len(first.view.members) == 2)
    threads[1].start()  # the other one is in, and receives that this one has joined
    for thread in threads:
        thread.join(DEADLINE)
    messages.send_to_group(second, b"after")
    received = [messages.receive_from_group(second, timeout=DEADLINE) for _ in range(2)]
    assert [type(event).__name__ for event in received] == ["Joined", "Data"]
    for group in (third, second, chat):
        messages.leave_group(group)
    receiving.join()


def test_what_a_join_has_come_to_is_said_in_the_end(
    alone: orca.Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is expelled while it joins, and then there is no member to be reached."""
    clock = Clock(monkeypatch)
    entry = Entry(alone, LIMIT)
    first, joiner = alone._session, entry.now
    with held_up(alone):
        sever_both(first, joiner, apart=True)
        until(lambda: alone.size == 1)
    joiner.pump.call(lambda now: joiner.exited("expelled: as a test has it"))
    until(lambda: "this process is cut off" in str(joiner.entry.too_late(LIMIT, None, ())))
    clock.end_limit(joiner)
    entry.leave()
    assert entry.error is not None
    assert f"could not join the group within {LIMIT} s" in str(entry.error)
    assert re.search(r"tried \d+ times, the last time: this process is cut off", str(entry.error))
