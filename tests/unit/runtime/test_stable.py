"""`options(stable=k)` and `group.stability()` in a group of one: what can be said, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import orcalike as orca
from tests.lib.processes import until
from tests.lib.shared_classes import Counter, Gate, Journal, transfer, transfer_when


@pytest.fixture
def group(with_stable: str) -> Iterator[orca.Group]:
    """A group of this process alone, with STABLE."""
    with orca.join(stack=with_stable) as joined:
        yield joined


def applied(group: orca.Group) -> int:
    """How many messages of this member were applied here, as STABLE has it."""
    ((messages,),) = group.stability().matrix
    return messages


def test_one_member_has_applied_it(counter: Counter) -> None:
    assert counter.add.options(stable=1)(2) == 2
    invocation = counter.add.options(stable=1).nowait(3)
    assert invocation.result(timeout=30) == 5
    assert asyncio.run(counted(counter)) == 7
    with pytest.raises(ValueError, match="no"):
        counter.fail.options(stable=1)("no")
    assert counter.take.options(stable=1, timeout=30)(8) == 0


async def counted(counter: Counter) -> int:
    return await counter.add.options(stable=1).aio(2)


def test_the_matrix_counts_what_was_applied(group: orca.Group, counter: Counter) -> None:
    before = applied(group)
    for _ in range(5):
        counter.add()
    assert applied(group) == before + 5
    stability = group.stability()
    assert stability.members == group.members
    assert (stability.level(1), stability.level(2)) == ((before + 5,), (0,))
    with pytest.raises(ValueError, match="k=0"):
        stability.level(0)


def test_what_runs_in_a_popup_thread_is_not_applied_yet(
    group: orca.Group, counter: Counter, journal: Journal
) -> None:
    before = applied(group)
    with Gate("slow") as gate:
        slow = journal.note_slowly.nowait("slow")
        gate.wait_until_reached()
        queued = journal.note.options(stable=1).nowait("after")
        other = counter.add.options(stable=1).nowait()
        until(lambda: counter.get() == 1, "it has left, and run")
        assert applied(group) == before
        assert not queued.done()
        assert not other.done()
        gate.open()
        assert slow.result(timeout=30) == "slow"
        queued.result(timeout=30)
        assert other.result(timeout=30) == 1
    assert applied(group) == before + 3


def test_a_call_that_waits_for_its_guard_counts_as_applied(
    group: orca.Group, counter: Counter
) -> None:
    before = applied(group)
    waiting = counter.take.options(stable=1).nowait(5)
    assert counter.add(1) == 1
    assert applied(group) == before + 2
    assert not waiting.done()
    counter.add(4)
    assert waiting.result(timeout=30) == 0


def test_atomic_functions(group: orca.Group) -> None:
    alice, bob = group.share(Counter, "alice", 5), group.share(Counter, "bob")
    assert transfer.options(stable=1)(alice, bob, 2) == 3
    assert transfer.options(stable=1).nowait(alice, bob, 2).result(timeout=30) == 1
    waiting = transfer_when.options(stable=1).nowait(alice, bob, amount=4)
    alice.add(3)
    assert waiting.result(timeout=30) == 8
    with pytest.raises(orca.InvocationTimeout, match="has run here"):
        transfer.options(stable=2, timeout=0.01)(bob, alice, 1)
    assert bob.get() == 7


def test_a_time_limit_says_that_it_has_run(counter: Counter) -> None:
    with pytest.raises(orca.InvocationTimeout, match="has run here, but when the time") as caught:
        counter.add.options(stable=2, timeout=0.01)(5)
    assert caught.value.outcome == "unknown"
    assert counter.get() == 5


def test_a_time_limit_in_a_coroutine(counter: Counter) -> None:
    async def add() -> None:
        await counter.add.options(stable=2, timeout=0.01).aio(5)

    with pytest.raises(orca.InvocationTimeout, match="2 members had applied it") as caught:
        asyncio.run(add())
    assert caught.value.outcome == "unknown"


def test_one_that_has_not_run_is_withdrawn(counter: Counter) -> None:
    with pytest.raises(orca.InvocationTimeout) as caught:
        counter.take.options(stable=2, timeout=0.01)(5)
    assert caught.value.outcome == "withdrawn"
    counter.add(9)
    assert counter.get() == 9


def test_cancelled_it_ends_with_what_it_came_to_here(counter: Counter) -> None:
    waiting = counter.add.options(stable=2).nowait(5)
    assert not waiting.done()
    assert waiting.cancel()
    assert waiting.result(timeout=30) == 5
    assert not waiting.cancel()


def test_so_many_wait_until_others_have_applied_them_and_no_more(
    group: orca.Group, counter: Counter
) -> None:
    call = counter.add.options(stable=2).nowait
    waiting = [call(1) for _ in range(65_536)]
    group.fence()  # they have left, and run
    with pytest.raises(orca.TooManyWaiting, match="65536 invocations wait until others"):
        call(1)
    assert counter.get() == 65_536
    for each in waiting[1:]:
        each.cancel()
    last = call(1)
    group.fence()
    assert counter.get() == 65_537
    assert not last.done()
    receipts = group._runtime.sender.receipts
    assert receipts is not None
    assert sum(map(len, receipts.awaited.values())) < 100, "what was given up is forgotten"


def test_leaving_ends_the_waiting(with_stable: str) -> None:
    with orca.join(stack=with_stable) as group:
        counter = group.share(Counter, "counter")
        waiting = counter.add.options(stable=2).nowait(5)
    with pytest.raises(orca.GroupClosed):
        waiting.result(timeout=30)
    with pytest.raises(orca.GroupClosed):
        group.stability()


def test_a_group_that_shall_not_wait(with_stable: str) -> None:
    with orca.join(stack=with_stable, blocked="raise") as group:
        counter = group.share(Counter, "counter")
        with pytest.raises(orca.NotEnoughMembers, match="stable=2: the view has 1 member with"):
            counter.add.options(stable=2)(5)
        assert counter.add.options(stable=1)(0) == 0


@pytest.mark.parametrize("k", [0, -1, 1025])
def test_no_number_of_members(counter: Counter, k: int) -> None:
    with pytest.raises(ValueError, match=f"stable={k}: from 1 to 1024 members"):
        counter.add.options(stable=k)
    with pytest.raises(ValueError, match=f"stable={k}"):
        transfer.options(stable=k)


@pytest.mark.parametrize("k", [True, 1.0, "2"])
def test_not_a_number_at_all(counter: Counter, k: object) -> None:
    with pytest.raises(TypeError, match="stable="):
        counter.add.options(stable=k)  # type: ignore[arg-type]


def test_a_read_is_applied_by_no_other_member(counter: Counter) -> None:
    with pytest.raises(TypeError, match=r"Counter\.get is a read"):
        counter.get.options(stable=1)


def test_without_the_layer() -> None:
    with orca.join() as group:
        counter = group.share(Counter, "counter")
        with pytest.raises(orca.StackError, match="no STABLE layer"):
            group.stability()
        with pytest.raises(orca.StackError, match=r"Counter\.add with stable=1: .*PACK:STABLE"):
            counter.add.options(stable=1)(1)
        with pytest.raises(orca.StackError, match="no STABLE layer"):
            transfer.options(stable=1).nowait(counter, counter, 1)
        assert counter.get() == 0


def test_an_object_that_is_not_shared() -> None:
    assert Counter(1).add.options(stable=3)(2) == 3
