"""A thread that waits for a guard is woken by what can end its wait, while others write much else."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.lib.fresh_members import ANYTHING, LOOKS, MAY_END, Bench, Box, OnLoop, move
from tests.lib.processes import DEADLINE, until


def test_a_read_that_waits_is_woken_by_writes_of_its_object_alone(bench: Bench) -> None:
    seen = bench.start(1, lambda: bench.boxes[1].holds(2))
    wakes = bench.wakes()
    for _ in range(100):
        bench.others[0].note()
    assert bench.wakes() == wakes
    assert bench.row(1)["wants to be woken"]
    bench.boxes[0].put(1)
    assert bench.wakes() == wakes + 1
    bench.boxes[0].put(2)
    assert seen.result(DEADLINE) == 2


def test_a_write_that_waits_is_woken_by_what_lets_it_run_alone(bench: Bench) -> None:
    taken = bench.start(1, bench.boxes[1].take)
    wakes = bench.wakes()
    for _ in range(100):
        bench.boxes[0].note()
        bench.others[0].note()
    assert bench.wakes() == wakes
    bench.boxes[0].put(7)
    assert taken.result(DEADLINE) == 7
    assert bench.wakes() == wakes + 1


def test_of_many_that_wait_one_is_woken(bench: Bench) -> None:
    first = bench.start(1, bench.boxes[1].take)
    second = bench.start(2, bench.boxes[2].take)
    applied = bench.row(2)["applied"]
    bench.boxes[0].put(1)
    assert first.result(DEADLINE) == 1
    assert bench.row(2)["applied"] == applied
    assert not second.done()
    bench.boxes[0].put(2)
    assert second.result(DEADLINE) == 2


def test_an_atomic_function_that_waits_lets_others_go_on(bench: Bench) -> None:
    """A write of one of its objects lets it run, and it writes the other one."""
    moved = bench.start(1, lambda: move(bench.boxes[1], bench.others[1]))
    seen = bench.start(2, lambda: bench.others[2].holds(1))
    bench.boxes[0].put(7)
    assert not bench.row(2)["wants to be woken"]
    assert (moved.result(DEADLINE), seen.result(DEADLINE)) == (7, 1)


def test_a_call_that_is_let_go_on_by_another_thread_is_due(bench: Bench) -> None:
    """The write comes while a read holds the object up, whose thread lets the write run, and with it the call."""
    LOOKS.clear()
    MAY_END.clear()
    taken = bench.start(1, bench.boxes[1].take)
    looked = bench.threads.submit(bench.boxes[0].look)
    assert LOOKS.wait(DEADLINE)
    wakes = bench.wakes()
    bench.boxes[0].put.nowait(7)
    assert bench.wakes() == wakes
    MAY_END.set()
    assert looked.result(DEADLINE) == 0
    until(lambda: bench.wakes() == wakes + 1, "it is woken")
    assert taken.result(DEADLINE) == 7


def test_writes_that_are_not_waited_for_wake_as_those_that_are(bench: Bench) -> None:
    seen = bench.start(1, lambda: bench.boxes[1].holds(1))
    wakes = bench.wakes()
    for _ in range(100):
        bench.others[0].note.nowait()
    bench.others[0].note()
    assert bench.wakes() == wakes
    bench.boxes[0].put.nowait(7)
    for _ in range(100):
        bench.others[0].note.nowait()
    bench.others[0].note()
    assert not bench.row(1)["wants to be woken"]
    assert seen.result(DEADLINE) == 1


def test_two_threads_of_one_member_are_woken_for_each_other(bench: Bench) -> None:
    seen = bench.start(1, lambda: bench.boxes[1].holds(1))
    outcome = bench.threads.submit(bench.others[1].holds, 1)
    until(lambda: int(bench.row(1)["by news of"]).bit_count() == 2, "both wait")
    wakes = bench.wakes()
    bench.thirds[0].note()
    assert bench.wakes() == wakes
    bench.others[0].put(1)
    assert bench.wakes() == wakes + 1
    assert outcome.result(DEADLINE) == 1
    bench.boxes[0].put(1)
    assert seen.result(DEADLINE) == 1


def test_a_wait_for_more_than_a_guard_is_woken_by_all(bench: Bench) -> None:
    """A barrier, after a call that has waited for its guard in the same thread."""

    def take_and_meet() -> int:
        number = bench.boxes[1].take()
        bench.groups[1].barrier()
        return number

    met = bench.start(1, take_and_meet)
    bench.boxes[0].put(3)
    for rank in (0, 2):
        bench.threads.submit(bench.groups[rank].barrier)
    assert met.result(DEADLINE) == 3


def test_after_a_while_without_news_any_news_wakes_again(stack: ExitStack, tmp_path: Path) -> None:
    bench = Bench(stack, tmp_path, "200ms")
    seen = bench.start(1, lambda: bench.boxes[1].holds(1))
    until(
        lambda: bench.row(1)["by news of"] == ANYTHING and bench.sleeps(1),
        "it wants all news again",
    )
    wakes = bench.wakes()
    bench.others[0].note()
    assert bench.wakes() > wakes
    bench.boxes[0].put(1)
    assert seen.result(DEADLINE) == 1


def test_without_freshness_any_news_wakes(stack: ExitStack, tmp_path: Path) -> None:
    bench = Bench(stack, tmp_path, "0")
    outcome = bench.threads.submit(bench.boxes[1].holds, 1)
    for number in range(1, 11):
        until(lambda: bench.sleeps(1), "it sleeps")
        assert bench.row(1)["by news of"] == ANYTHING
        wakes = bench.wakes()
        assert bench.others[0].note() == number
        assert bench.wakes() > wakes
    bench.boxes[0].put(1)
    assert outcome.result(DEADLINE) == 1


def test_on_an_event_loop_one_that_waits_for_nothing_is_not_woken(
    bench: Bench, on_loop: OnLoop
) -> None:
    assert on_loop.group._session.stack.waiting == 0
    on_loop.after_news()
    assert not any(on_loop.is_woken() for _ in range(10))


def test_on_an_event_loop_a_coroutine_is_woken_by_what_can_end_its_wait(
    bench: Bench, on_loop: OnLoop
) -> None:
    for call, result in ((on_loop.box.take.aio, 7), (lambda: on_loop.box.holds.aio(1), 1)):
        on_loop.after_news()
        outcome = on_loop.start(call)
        until(lambda: on_loop.listens() in ((True, 0), (True, 2)), "it listens for a little")
        wakes = bench.wakes()
        for _ in range(100):
            bench.others[0].note()
        assert bench.wakes() == wakes
        bench.boxes[0].put(7)
        assert bench.wakes() == wakes + 1
        assert outcome.result(DEADLINE) == result


def test_on_an_event_loop_a_coroutine_that_waits_for_more_is_woken_by_all(
    bench: Bench, on_loop: OnLoop
) -> None:
    on_loop.after_news()
    met = on_loop.start(on_loop.group.barrier.aio)
    until(lambda: on_loop.listens() == (True, ANYTHING), "it listens for all")
    for group in bench.groups:
        bench.threads.submit(group.barrier)
    assert met.result(DEADLINE) is None
    on_loop.after_news()


def test_a_coroutine_beside_a_thread_of_the_groups_own_is_woken(bench: Bench) -> None:
    """The member's own thread receives, and the loop has no part in that."""

    async def take() -> int:
        return await bench.boxes[1].take.aio()

    taken = bench.threads.submit(asyncio.run, take())
    stack = bench.groups[1]._session.stack
    until(
        lambda: stack.patient.count == 1 and bench.order_of(1)["armed"] and bench.has_all(1),
        "it waits",
    )
    wakes = bench.wakes()
    bench.boxes[0].put(7)
    assert bench.wakes() > wakes
    assert taken.result(DEADLINE) == 7


def test_reads_at_objects_that_share_a_bit_are_woken_each_by_its_own(bench: Bench) -> None:
    """Of many objects; the last one that is waited for sleeps on meanwhile."""
    numbers = [0, 42, 64, 128]
    near, far = (
        {number: group.share(Box, f"box {number}") for number in range(130)}
        for group in (bench.groups[1], bench.groups[0])
    )
    outcomes = [bench.start(1, lambda: near[0].holds(1))]
    outcomes += [bench.threads.submit(near[number].holds, 1) for number in numbers[1:]]
    until(lambda: bench.groups[1]._session.stack.patient.count == len(numbers), "all wait")
    for number, outcome in zip(reversed(numbers), reversed(outcomes), strict=True):
        assert not outcome.done()
        far[number].put(1)
        assert outcome.result(DEADLINE) == 1
    assert bench.groups[1]._session.stack.patient.count == 0


def test_many_coroutines_at_many_objects_are_woken(bench: Bench, on_loop: OnLoop) -> None:
    far = [bench.groups[0].share(Box, f"box {number}") for number in range(130)]

    async def share() -> list[Box]:
        return [await on_loop.group.share.aio(Box, f"box {number}") for number in range(130)]

    near = on_loop.start(share).result(DEADLINE)
    on_loop.after_news()
    seen = [on_loop.start(partial(box.holds.aio, 2)) for box in near]
    taken = [on_loop.start(box.take.aio) for box in near[64:]]
    count = len(seen) + len(taken)
    until(lambda: on_loop.group._session.stack.patient.count == count, "all wait")
    for box, outcome in zip(far[64:], taken, strict=True):
        box.put(7)
        assert outcome.result(DEADLINE) == 7
    for box, reader in zip(far, seen, strict=True):
        box.put(7)
        box.put(7)
        assert reader.result(DEADLINE) == 2
    assert on_loop.group._session.stack.patient.count == 0
