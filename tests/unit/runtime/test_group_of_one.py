"""Operations of objects that are shared in a group of one: what they get, give and raise."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca
from tests.lib.shared_classes import Counter, Fragile, Journal


def test_three_ways_of_calling(counter: Counter) -> None:
    assert counter.add(5) == 5
    assert counter.add.nowait(2).result() == 7
    assert asyncio.run(in_a_coroutine(counter)) == (10, 10)
    assert counter.get() == counter.get.nowait().result() == 10


async def in_a_coroutine(counter: Counter) -> tuple[int, int]:
    return await counter.add.aio(3), await counter.get.aio()


@pytest.mark.parametrize("way", ["call", "nowait", "options"])
def test_arguments_in_every_form(counter: Counter, way: str) -> None:
    ways: dict[str, Callable[..., int]] = {
        "call": counter.add_all,
        "nowait": lambda *args, **named: counter.add_all.nowait(*args, **named).result(),
        "options": counter.add_all.options(timeout=5),
    }
    call = ways[way]
    assert call() == 0
    assert call(1, 2, 3) == 6
    assert call(*range(20)) == 196
    assert call(1, twice=True) == 198
    assert call(twice=True, a=5, b=6) == 220
    assert call(2**70 - 2**70, c=-220) == 0


def test_defaults_and_keywords(counter: Counter) -> None:
    assert counter.add() == 1
    assert counter.add(by=4) == 5
    assert counter.add.nowait(by=1).result() == 6
    assert counter.above(least=5) == 6


@pytest.mark.parametrize("args", [(1, 2), ("x", "y", "z")])
def test_a_call_that_does_not_fit_fails_at_the_caller(
    counter: Counter, args: tuple[object, ...]
) -> None:
    call: object = counter.add
    with pytest.raises(TypeError, match=r"positional argument"):
        call(*args)  # type: ignore[operator]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'wrong'"):
        call(wrong=1)  # type: ignore[operator]
    assert counter.get() == 0


@pytest.mark.parametrize("name", ["above", "take"])
@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("way", ["call", "nowait", "options"])
def test_a_call_that_fits_no_guarded_operation_is_reported_in_its_name(
    counter: Counter, name: str, shares: bool, way: str
) -> None:
    operation: Any = getattr(counter if shares else Counter(), name)
    call = {
        "call": operation,
        "nowait": lambda *args, **named: operation.nowait(*args, **named).result(),
        "options": operation.options(timeout=5),
    }[way]
    called = rf"^Counter\.{name}\(\) "
    with pytest.raises(TypeError, match=called + "missing 1 required"):
        call()
    with pytest.raises(TypeError, match=called + "takes 2 positional arguments but 4 were given"):
        call(1, 2, 3)
    with pytest.raises(TypeError, match=called + "got an unexpected keyword argument 'timeout'"):
        call(1, timeout=2)


def test_an_exception_is_raised_with_a_note_and_leaves_what_was_done(counter: Counter) -> None:
    with pytest.raises(ValueError, match="went wrong") as caught:
        counter.fail("went wrong")
    assert caught.value.__notes__ == ["in Counter.fail of 'counter'"]
    assert any(entry.name == "fail" for entry in caught.traceback)
    assert counter.get() == 1

    invocation = counter.fail.nowait("again")
    assert isinstance(invocation.exception(), ValueError)
    with pytest.raises(ValueError, match="again"):
        invocation.result()


def test_undo_leaves_the_object_as_it_was(counter: Counter) -> None:
    counter.add(3)
    with pytest.raises(ValueError, match="undone") as caught:
        counter.fail_undone("undone")
    assert caught.value.__notes__ == ["in Counter.fail_undone of 'counter'"]
    assert counter.get() == 3


def test_guards(counter: Counter) -> None:
    waiting = counter.take.nowait(5)
    assert not waiting.done()
    second = counter.take.nowait(2)
    assert counter.add(3) == 3  # its own result, before the younger one runs
    assert second.result() == 1
    assert not waiting.done()
    counter.add(4)
    assert waiting.result() == 0

    with pytest.raises(ValueError, match="a negative amount"):
        counter.take(-1)


def test_a_guarded_read_waits_on_the_spot(counter: Counter) -> None:
    waiting = counter.above.nowait(2)
    counter.add(2)
    assert not waiting.done()
    counter.add(1)
    assert waiting.result() == 3


def test_waiting_invocations_are_tried_oldest_first_and_again(group: orca.Group) -> None:
    journal = group.share(Journal, "journal", 1)
    journal.put("first")
    puts = [journal.put.nowait(item) for item in ("a", "b", "c")]
    gets = [journal.get.nowait(reader) for reader in ("x", "y", "z")]
    assert [invocation.done() for invocation in puts + gets] == [True] * 6
    assert journal.history() == [
        *("put first", "x got first", "put a", "y got a", "put b", "z got b", "put c")
    ]


def test_the_guard_of_an_unshared_object() -> None:
    counter = Counter(3)
    assert counter.take(2) == 1
    with pytest.raises(orca.GuardFalse, match=r"Counter\.take"):
        counter.take(2)
    with pytest.raises(orca.GuardFalse):
        counter.take.nowait(2).result()
    with pytest.raises(ValueError, match="a negative amount"):
        counter.take(-1)
    with pytest.raises(orca.GuardFalse):
        counter.take_nested(2)


def test_operations_of_its_own_are_plain_calls(counter: Counter) -> None:
    assert counter.add_twice(4) == 8
    assert counter.take_nested(1) == 7
    with pytest.raises(orca.GuardFalse):  # no other call could make it true meanwhile
        counter.take_nested(100)
    assert counter.get() == 7


def test_what_an_operation_may_not_use(group: orca.Group, counter: Counter) -> None:
    journal = group.share(Journal, "journal")
    for call in (journal.read_another, journal.write_another):
        with pytest.raises(orca.NestedWrite, match="inside an operation of another object"):
            call(counter)
    for use in (
        lambda: group.share(Counter, "another"),
        lambda: group.share.nowait(Counter, "another"),
        lambda: group.find(Counter, "counter"),
        lambda: group.drop(counter),
        group.fence,
        group.barrier,
        lambda: journal.note("x"),
        lambda: journal.note.nowait("x"),
        journal.length,
    ):
        with pytest.raises(orca.NestedWrite):
            counter.show(lambda _, use=use: use())  # type: ignore[misc]
    assert counter.add() == 1
    assert journal.history() == []


def test_now_and_random_inside_an_operation(group: orca.Group) -> None:
    journal = group.share(Journal, "journal")
    before = time.time()
    moment, first, number = journal.roll()
    assert before - 1 < moment < time.time() + 1
    other, second, another = journal.roll()
    assert other >= moment
    assert (second, another) != (first, number)
    assert journal.history() == [f"{moment} {first}", f"{other} {second}"]


def test_now_and_random_outside_of_any_operation() -> None:
    assert abs(orca.now() - time.time()) < 1
    assert orca.random().random() != orca.random().random()
    moment, *_ = Journal().roll()
    assert abs(moment - time.time()) < 1


def test_references_to_shared_objects_travel(group: orca.Group, counter: Counter) -> None:
    journal = group.share(Journal, "journal")
    journal.refer_to(counter)
    assert journal.referred() is counter
    journal.refer_to({"here": [counter, journal]})
    assert journal.referred() == {"here": [counter, journal]}
    found = group.share(Journal, "second", 5)
    found.refer_to(journal)
    assert found.referred() is journal


def test_arguments_are_copies(group: orca.Group) -> None:
    journal = group.share(Journal, "journal")
    given = [1, 2]
    journal.refer_to(given)
    given.append(3)
    assert journal.referred() == [1, 2]


def test_an_argument_that_cannot_travel(group: orca.Group) -> None:
    journal = group.share(Journal, "journal")
    with pytest.raises(orca.NotSerializable, match=r"Journal\.refer_to"):
        journal.refer_to({"a": [object()]})
    journal.note("goes on")
    assert journal.history() == ["goes on"]


def test_a_constructor_may_use_its_own_operations(group: orca.Group) -> None:
    fragile = group.share(Fragile, "fragile", 4)
    assert fragile.get() == 4


def test_a_failure_that_is_not_asked_for_is_logged(
    counter: Counter, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "orcalike"):
        counter.fail.nowait("unheard")
    assert "unheard" in caplog.text
    caplog.clear()
    invocation = counter.fail.nowait("heard")
    with pytest.raises(ValueError, match="heard"):
        invocation.result()
    del invocation
    assert caplog.text == ""


def test_repr_of_an_invocation(counter: Counter) -> None:
    waiting = counter.take.nowait(1)
    assert "take" in repr(waiting)
    assert "under way" in repr(waiting)
    counter.add()
    assert "done" in repr(waiting)
    failed = counter.fail.nowait("it")
    assert "failed" in repr(failed)
    assert isinstance(failed.exception(), ValueError)


@pytest.mark.parametrize("popup", [False, True])
@pytest.mark.parametrize("kind", [MemoryError, RecursionError])
def test_a_fault_of_this_process_stops_its_replica(
    caplog: pytest.LogCaptureFixture, kind: type[Exception], popup: bool
) -> None:
    @orca.shared
    class Faulty:
        @orca.write(popup=popup)
        def fault(self, which: str) -> None:
            raise {"MemoryError": MemoryError, "RecursionError": RecursionError}[which]()

    with orca.join() as group:
        faulty = group.share(Faulty, "faulty")
        for _ in range(2):
            with pytest.raises(orca.ReplicaDivergence, match=r"Faulty\.fault"):
                faulty.fault(kind.__name__)
    (logged,) = caplog.messages
    assert "serve no more" in logged
