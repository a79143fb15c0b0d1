"""A call that would wait on an event loop's thread says what to write, in the words of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import pytest

import orcalike as orca
from orcalike import objects
from tests.lib.shared_classes import Counter, transfer


@orca.shared
class Tray:
    """Its methods stand between the program and its operations, in several ways."""

    def __init__(self) -> None:
        self.items: list[int] = []

    @orca.write
    def put(self, item: int) -> None:
        self.items.append(item)

    @orca.write
    def _fill(self) -> None:
        self.items.append(1)

    @orca.read
    def first(self) -> int:
        return self.items[0]

    @first.when
    def _(self) -> bool:
        return bool(self.items)

    first = property(first)  # type: ignore[assignment]

    @orca.local
    def __enter__(self) -> None:
        self._fill()

    @orca.local
    def __exit__(self, *error: object) -> None:
        """Nothing."""

    @orca.local
    def fill(self) -> None:
        self._fill()

    @orca.local
    def put_one(self) -> None:
        self.put(1)


def enter(shared: AbstractContextManager[object]) -> None:
    with shared:
        pass


def increase(counter: Any) -> None:
    counter += 1


def assign(value: Any) -> None:
    value.value = 3


def delete_first(values: Any) -> None:
    del values[0]


def first_of(values: Iterable[object]) -> object:
    return next(iter(values))


IN_A_THREAD = r"have a thread call it, as in `await asyncio\.to_thread\(\.\.\.\)`"
CALLS: list[tuple[Any, tuple[Any, ...], Callable[[Any], object], str, str]] = [
    (objects.Dict, (), lambda it: it.__setitem__("a", 1), "Dict.__setitem__", "__setitem__"),
    (objects.Counter, (), lambda it: it.add(1), "Counter.add", "add"),
    (objects.Counter, (), increase, "Counter.add", "add"),
    (objects.Value, (0,), assign, "Value.set", "set"),
    (objects.Queue, (), lambda it: it.put(1), "Queue.put", "put"),
    (objects.Queue, (), lambda it: it.get(), "Queue.get", "get"),
    (objects.Queue, (), first_of, "Queue.__iter__", "async for"),
    (objects.Topic, (), lambda it: first_of(it.subscribe()), "Subscription.__next__", "async for"),
    (objects.Event, (), lambda it: it.wait(), "Event.wait", "wait"),
    (objects.Cache, (), lambda it: it.get_or_set("a", int), "Cache.get_or_set", "get_or_set"),
    (objects.Lock, (), enter, "Lock.__enter__", "async with"),
    (objects.Lock, (), lambda it: it.acquire(), "Lock.acquire", "acquire"),
    (objects.Semaphore, (), enter, "Semaphore.__enter__", "async with"),
    (objects.Election, (), enter, "Election.__enter__", "async with"),
    (objects.List, ([1],), lambda it: it.extend([1]), "List.extend", "extend"),
    (objects.List, ([1],), lambda it: it.__iadd__([1]), "List.extend", "extend"),
    (objects.List, ([1],), delete_first, "List.__delitem__", IN_A_THREAD),
    (Tray, (), enter, "Tray.__enter__", "async with"),
    (Tray, (), lambda it: it.fill(), "Tray.fill", IN_A_THREAD),
    (Tray, (), lambda it: it._fill(), "Tray._fill", "_fill"),
    (Tray, (), lambda it: it.first, "Tray.first", IN_A_THREAD),
    (Tray, (), lambda it: it.put_one(), "Tray.put", "put"),
    (Tray, (), lambda it: it.put.options(timeout=1)(1), "Tray.put", "put"),
]


@pytest.mark.parametrize(("cls", "arguments", "call", "title", "write"), CALLS)
async def test_an_object(
    cls: Any, arguments: tuple[Any, ...], call: Callable[[Any], object], title: str, write: str
) -> None:
    if not write.startswith(("async", "have")):
        write = rf"write `await obj\.{write}\.aio\(\.\.\.\)`"
    elif write.startswith("async"):
        write = f"write `{write}`"
    words = rf"^{title} would block the event loop that runs on this thread: {write}$"
    async with orca.join() as group:
        shared = await group.share.aio(cls, "it", *arguments)
        with pytest.raises(orca.BlockingInLoop, match=words) as raised:
            call(shared)
        assert raised.value.__suppress_context__ or raised.value.__context__ is None


async def test_what_is_called_on_the_way_is_named_itself() -> None:
    async with orca.join() as group:
        cache = await group.share.aio(objects.Cache[str, int], "cache")
        counter = await group.share.aio(objects.Counter, "counter")
        with pytest.raises(orca.BlockingInLoop, match=r"^Counter\.add .* `await obj\.add\.aio"):
            await cache.get_or_set.aio("a", lambda: counter.add(1))


async def test_a_group_an_atomic_function_and_an_invocation() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        taking, finding = counter.take.nowait(5), group.find.nowait(Counter, "another")
        calls: list[tuple[Callable[[], object], str]] = [
            (lambda: group.share(Counter, "other"), r"^share .* `await group\.share\.aio"),
            (group.barrier, r"^barrier .* `await group\.barrier\.aio"),
            (lambda: transfer(counter, counter), r"^transfer .* `await transfer\.aio"),
            (
                taking.result,
                r"^Counter.take .*: await the invocation, and do not .* `await obj\.take\.",
            ),
            (
                finding.result,
                "^find 'another' .*: await the invocation, and do not call its `result`$",
            ),
        ]
        for call, words in calls:
            with pytest.raises(orca.BlockingInLoop, match=words):
                call()
        for invocation in (taking, finding):
            assert invocation.cancel()
