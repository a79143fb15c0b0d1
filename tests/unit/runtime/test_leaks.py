"""What is over is freed: members that left, joined in vain or joined again, and stacks that were dropped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.runtime.codes import Code
from orcalike.runtime.dispatch import Runtime
from orcalike.transport.stack import Stack
from tests.instructions.workload import Network
from tests.lib.shared_classes import Counter, Journal


@orca.shared
class Slotted:
    """It allows no weak reference."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @orca.write
    def add(self) -> int:
        self.count += 1
        return self.count

    @orca.read
    def get(self) -> int:
        return self.count


@orca.atomic
def both(first: Counter, second: Counter) -> int:
    """What they have together."""
    return first.get() + second.get()


def live() -> tuple[int, int]:
    """How many runtimes and stacks there are."""
    gc.collect()
    kinds = [type(each) for each in gc.get_objects()]
    return kinds.count(Runtime), kinds.count(Stack)


def grows(make: Callable[[], object], times: int = 5) -> tuple[int, int]:
    """How many more there are once `make` was called so often, and what it returned is kept."""
    before = live()
    kept = [make() for _ in range(times)]
    after = live()
    assert len(kept) == times
    return after[0] - before[0], after[1] - before[1]


def test_a_member_that_left_is_freed_whatever_was_under_way() -> None:
    def member() -> None:
        with orca.join() as group:
            counter = group.share(Counter, "counter")
            journal = group.share(Journal, "journal", 1)
            counter.take.nowait(5)
            journal.get.nowait("me")
            counter.above.nowait(7)

    assert grows(member) == (0, 0)


def test_objects_that_the_program_keeps_keep_no_member() -> None:
    """They show their last state, and calls say that the group was left."""

    def member() -> tuple[object, ...]:
        with orca.join() as group:
            counter, other = group.share(Counter, "counter"), group.share(Counter, "other")
            dropped, slotted = group.share(Counter, "dropped"), group.share(Slotted, "slotted")
            group.drop(dropped)
            slotted.add()
            waiting = counter.take.nowait(5), counter.above.nowait(9)
            assert not any(call.done() for call in waiting)
            counter.add(3)
        assert (counter.get(), slotted.get()) == (3, 1)
        for refused in (counter.add, counter.add.nowait, counter.add.aio, slotted.add):
            with pytest.raises(orca.GroupClosed):
                refused()
        for atomic in (both, both.nowait):
            with pytest.raises(orca.GroupClosed):
                atomic(counter, other)
        with pytest.raises(orca.ObjectDropped):
            dropped.get()
        with pytest.raises(orca.ObjectDropped):
            dropped.add(1)
        with pytest.raises(orca.GroupClosed):
            group.drop(counter)
        return counter, other, dropped, slotted, *waiting

    assert grows(member) == (0, 0)


def test_a_group_that_joins_in_vain_is_freed(tmp_path: Path) -> None:
    def member() -> None:
        with (
            pytest.raises(orca.JoinFailed),
            orca.join(seeds=f"unix:{tmp_path}/nobody", timeout=0.01),
        ):
            pass

    assert grows(member) == (0, 0)


async def test_a_group_that_joins_in_vain_on_a_loop_is_freed(tmp_path: Path) -> None:
    async def member() -> None:
        with pytest.raises(orca.JoinFailed):
            async with orca.join(seeds=f"unix:{tmp_path}/nobody", timeout=0.01):
                pass

    before = live()
    for _ in range(5):
        await member()
    async with asyncio.timeout(60):
        while live() != before:  # the last one's next try is still on the loop's list
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("order")
def test_a_stack_that_is_dropped_is_freed_whatever_it_was_about_to_do() -> None:
    """A layer asks to go on, and no input comes any more."""

    def stacks() -> None:
        network = Network()
        for node in network.nodes:
            for layer in node.stack.layers:
                node.stack.again(layer)
            node.runtime.proceed_with(node.runtime)
            node.runtime.sender.post(Code.FENCE, (), "a mark")

    assert grows(stacks) == (0, 0)


def test_an_operation_that_outlives_its_group_keeps_its_place_in_the_order() -> None:
    """In a pop-up thread: its clock goes on, and nothing breaks when it ends."""
    started, let_go = threading.Event(), threading.Event()
    hooks["began"], hooks["wait"] = started.set, let_go.wait
    try:
        with contextlib.suppress(KeyError), orca.join() as group:
            slow = group.share(Slow, "slow")
            slow.run.nowait()
            assert started.wait(30)
            raise KeyError("leave at once")
    finally:
        let_go.set()
    for thread in threading.enumerate():
        if thread.name == "orcalike pop-up":
            thread.join(30)
    assert slow.stamps == [slow.stamps[0]] * 2


hooks: dict[str, Callable[[], object]] = {}


@orca.shared
class Slow:
    """Its operation takes as long as the test wants."""

    def __init__(self) -> None:
        self.stamps: list[float] = []

    @orca.write(popup=True)
    def run(self) -> None:
        self.stamps.append(orca.now())
        hooks["began"]()  # orca: unchecked
        hooks["wait"]()  # orca: unchecked
        self.stamps.append(orca.now())
