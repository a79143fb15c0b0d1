"""What is waited for comes at once, though the order goes over meanwhile, or the same process waits in another group too."""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.transport.drivers import descriptors
from tests.lib.fresh_members import LONG, Bench, Box, OnLoop
from tests.lib.processes import DEADLINE, until
from tests.lib.programs import OVER_SOCKETS


def counts(group: orca.Group) -> int:
    """How many wait in a member."""
    stack = group._session.stack
    return int(stack.waiting) + stack.patient.count


def lacking(files: int, number: int, flags: int) -> int:
    """As a process opens what others offer that has no descriptors left."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_waits_go_on_as_the_order_goes_over_to_a_sequencer_and_back(
    bench: Bench, on_loop: OnLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [*bench.groups, on_loop.group]

    def order_is_in_memory(*, there: bool) -> bool:
        return all((group._session.stack.focus("RING") is not None) == there for group in groups)

    on_loop.after_news()
    seen = on_loop.start(lambda: on_loop.box.holds.aio(1))
    taken = bench.start(1, bench.thirds[1].take)
    with monkeypatch.context() as patch:
        patch.setattr(descriptors, "open_in", lacking)
        far = orca.connect(seeds=bench.groups[0].address, timeout=DEADLINE)
        until(lambda: order_is_in_memory(there=False), "a sequencer orders")
        bench.thirds[0].put(1)
        assert taken.result(DEADLINE) == 1
        taken = bench.threads.submit(bench.thirds[2].take)
        until(lambda: counts(bench.groups[2]) == 1, "it waits")
    far.close()
    until(lambda: order_is_in_memory(there=True), "the order is in memory")
    on_loop.after_news()
    bench.boxes[0].put(1)
    assert seen.result(DEADLINE) == 1
    bench.thirds[0].put(2)
    assert taken.result(DEADLINE) == 2
    until(lambda: [counts(group) for group in groups] == [0] * 4, "nothing waits")


@pytest.mark.parametrize("other", [None, OVER_SOCKETS], ids=["memory", "sequencer"])
def test_a_process_waits_in_two_groups(
    stack: ExitStack, tmp_path: Path, bench: Bench, on_loop: OnLoop, other: str | None
) -> None:
    """One loop and one thread hand on from the one what others wait for in the other, and back."""
    folder = tmp_path / "second"
    folder.mkdir()
    second = Bench(stack, folder, stack=other)

    async def hand_on() -> int:
        joining = orca.join(seeds=second.groups[0].address, freshness=LONG, stack=other)
        async with joining as group:
            box = await group.share.aio(Box, "box")
            returned = asyncio.create_task(on_loop.other.take.aio())
            await box.put.aio(await on_loop.box.take.aio())
            return await returned

    def hand_back() -> None:
        bench.others[1].put(second.boxes[1].take())

    thread = bench.threads.submit(hand_back)
    handed = on_loop.start(hand_on)
    until(lambda: second.groups[1]._runtime.waiting and counts(on_loop.group) == 2, "all wait")
    for each in (bench, second):
        each.thirds[0].note()
    bench.boxes[0].put(7)
    assert handed.result(DEADLINE) == 7
    assert thread.result(DEADLINE) is None
