"""Writes that go past the layers, where nothing is before them in an order in shared memory (H81)."""

from __future__ import annotations

import asyncio
import signal
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

import orcalike as orca
from orcalike.history_check.check import check_folder
from orcalike.testing import Members
from tests.lib.processes import until
from tests.lib.shared_classes import Gate, pass_gate

LIMIT = 30


@orca.shared
class Log:
    """What was added, in its order."""

    def __init__(self) -> None:
        self.entries: list[object] = []
        self.open = False

    @orca.write
    def add(self, entry: object) -> int:
        self.entries.append(entry)
        return len(self.entries)

    @orca.write
    def keep(self, *, entry: object) -> int:
        self.entries.append(entry)
        return len(self.entries)

    @orca.write
    def refuse(self, why: str) -> None:
        raise ValueError(why)

    @orca.write
    def unlock(self) -> None:
        self.open = True

    @orca.write
    def enter(self) -> int:
        """Waits until it is unlocked."""
        self.entries.append("entered")
        return len(self.entries)

    @enter.when
    def _(self) -> bool:
        return self.open

    @orca.read
    def all(self) -> list[object]:
        return [*self.entries]


def past(group: orca.Group) -> int:
    """How many messages of this member have gone past the layers."""
    return cast("int", group._session.stack.dump()["PACK"]["past the layers"])


def order_of(group: orca.Group) -> Any:
    """What its order in memory is like."""
    return group._session.stack.dump()["RING"]


def wants_to_be_woken(group: orca.Group) -> bool:
    """Whether a thread of this member sleeps until there is news of an object; that of the pump waits for none."""
    order = order_of(group)
    row = next(row for row in order["rows"] if row["row"] == order["row"])
    return bool(row["wants to be woken"] and row["by news of"])


TRIES = 100
"""Whether one call goes past the layers depends on what other threads of the member do just then."""


def some_go_past(group: orca.Group, order: str, write: Callable[[int], object]) -> bool:
    """Whether some of these writes do; over a sequencer none does."""
    before = past(group)
    for number in range(TRIES):
        write(number)
        if past(group) > before:
            break
    return (past(group) > before) == (order == "RING")


def add_same(log: Log, entry: object, _: int) -> None:
    log.add(entry)


def test_writes_that_wait_do(group: orca.Group, order: str) -> None:
    log = group.share(Log, "log")
    for entry in (1, "two", None, (3, b"four")):
        assert some_go_past(group, order, partial(add_same, log, entry))
        assert log.all()[-1] == entry
    before = log.all()
    assert [log.add(number) for number in range(4)] == [len(before) + 1 + n for n in range(4)]
    assert log.all() == [*before, 0, 1, 2, 3]


async def test_writes_that_are_awaited_do(group: orca.Group, order: str) -> None:
    log = await group.share.aio(Log, "log")
    before = past(group)
    assert [await log.add.aio(entry) for entry in range(TRIES)] == [*range(1, TRIES + 1)]
    assert (past(group) > before) == (order == "RING")
    more = range(TRIES, TRIES + 5)
    together = await asyncio.gather(*[log.add.aio(entry) for entry in more])
    assert together == [entry + 1 for entry in more]
    assert log.all() == [*range(TRIES + 5)]


not_held_up: list[object] = []
"""Objects whose operations pass the gate."""


@orca.shared
class Door:
    """Its operation is held up at one member."""

    @orca.write
    def pass_through(self) -> None:
        if self not in not_held_up:  # orca: unchecked
            pass_gate("door")  # orca: unchecked


class Result:
    """What an operation returns, at the member that called."""


@orca.shared
class Maker:
    """Its results are known by weak references."""

    @orca.write
    def make(self) -> Result:
        return Result()


async def test_nothing_holds_a_result_that_its_caller_has_let_go(group: orca.Group) -> None:
    maker = await group.share.aio(Maker, "maker")
    result = weakref.ref(await maker.make.aio())
    assert result() is None
    results = await asyncio.to_thread(lambda: [weakref.ref(maker.make()) for _ in range(2)])
    assert [each() for each in results] == [None, None]


def test_what_is_named_or_not_small_goes_past_the_layers_too(group: orca.Group, order: str) -> None:
    log = group.share(Log, "log")
    before = past(group)
    for number in range(20):
        assert log.add(entry={"a": [number]}) == 2 * number + 1
        assert log.add("x" * 3000) == 2 * number + 2
    assert past(group) == before + 40 * (order == "RING")
    assert log.all()[-2:] == [{"a": [19]}, "x" * 3000]


def test_what_is_large_or_can_only_be_named_does_not(group: orca.Group) -> None:
    log = group.share(Log, "log")
    before = past(group)
    for number in range(20):
        assert log.keep(entry=number) == 2 * number + 1
        assert log.add("x" * 5000) == 2 * number + 2
    assert past(group) == before
    with pytest.raises(TypeError, match="add"):
        log.add()  # type: ignore[call-arg]
    assert log.add(4) == 41


def test_what_was_sent_before_without_waiting_comes_first(group: orca.Group) -> None:
    log = group.share(Log, "log")
    for number in range(100):
        log.add.nowait(2 * number)
        assert log.add(2 * number + 1) == 2 * number + 2
    assert log.all() == list(range(200))


def test_what_an_operation_raises_is_raised_with_its_note(group: orca.Group, order: str) -> None:
    log = group.share(Log, "log")

    def refuse(_: int) -> None:
        with pytest.raises(ValueError, match="no room") as raised:
            log.refuse("no room")
        assert raised.value.__notes__ == ["in Log.refuse of 'log'"]

    assert some_go_past(group, order, refuse)
    assert log.add(1) == 1


def test_a_call_whose_guard_does_not_hold_waits_as_ever(group: orca.Group) -> None:
    log = group.share(Log, "log")
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(log.enter()))
    thread.start()
    for number in range(50):
        log.add(number)
    log.unlock()
    thread.join(LIMIT)
    assert len(seen) == 1
    assert log.all().count("entered") == 1


def test_one_that_a_signal_interrupts_while_its_guard_does_not_hold_is_withdrawn(
    group: orca.Group,
) -> None:
    log = group.share(Log, "log")

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    former = signal.signal(signal.SIGUSR2, raise_it)
    timer = threading.Timer(
        0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR2)
    )
    timer.start()
    try:
        with pytest.raises(InterruptedError):
            log.enter()
    finally:
        timer.join()
        signal.signal(signal.SIGUSR2, former)
    log.unlock()
    assert log.add(1) == 1, "it did not run"


rings: list[int] = []
"""As many signals are to come as guards are tested."""


@orca.shared
class Interrupted:
    """A signal comes in the midst of the test of its guard, which is false until it is unlocked."""

    def __init__(self) -> None:
        self.open = False
        self.entered = 0

    @orca.write
    def unlock(self) -> None:
        self.open = True

    @orca.write
    def enter(self) -> None:
        self.entered += 1

    @enter.when
    def _(self) -> bool:
        if rings:  # orca: unchecked
            rings.pop()  # orca: unchecked
            signal.raise_signal(signal.SIGUSR2)  # orca: unchecked
        return self.open

    @orca.read
    def count(self) -> int:
        return self.entered


def test_one_that_a_signal_interrupts_as_its_guard_is_tested_is_withdrawn(
    group: orca.Group, order: str
) -> None:
    """The handler runs when the call has left its thread, and waits."""
    guarded = group.share(Interrupted, "guarded")

    def raise_it(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    def enter(number: int) -> None:
        rings.append(number)
        with pytest.raises(InterruptedError):
            guarded.enter()

    former = signal.signal(signal.SIGUSR2, raise_it)
    try:
        assert some_go_past(group, order, enter)
    finally:
        signal.signal(signal.SIGUSR2, former)
        rings.clear()
    guarded.unlock()
    assert guarded.count() == 0


def test_a_thread_of_another_member_that_sleeps_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the write itself, before it returns."""
    monkeypatch.setenv("ORCALIKE_CHECK", "none")
    members = Members(2, LIMIT)
    try:
        here, there = members
        log = here.share(Log, "log")
        seen: list[int] = []
        enter = there.find(Log, "log").enter
        thread = threading.Thread(target=lambda: seen.append(enter()), daemon=True)
        thread.start()
        for number in range(TRIES):
            until(lambda: wants_to_be_woken(there), "it sleeps")
            wakes, went_past = order_of(here)["wakes"], past(here)
            log.add(number)
            woken = past(here) > went_past and order_of(here)["wakes"] > wakes
            if woken:
                break
        # In some tries it has just stopped to sleep by itself, as the write comes.
        assert woken
        log.unlock()
        thread.join(LIMIT)
        assert seen == [number + 2]
    finally:
        members.close()


def test_writes_that_are_recorded_do_and_are_on_file(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path))
    with orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group:
        log = group.share(Log, "log")
        for number in range(20):
            assert log.add(2 * number) == 2 * number + 1
            log.add.nowait(2 * number + 1)
        with pytest.raises(ValueError, match="no"):
            log.refuse("no")
        assert log.add("x" * 5000) == 41
        group.fence()
        assert some_go_past(group, order, log.add)
        written = len(log.all())
    verdict = check_folder(tmp_path, 0)
    assert verdict.violations == []
    assert verdict.delivered >= written + 2


def has(log: Log, entries: list[object]) -> bool:
    """Whether these are in it."""
    return log.all() == entries


def test_a_call_is_sent_before_its_thread_runs_what_others_have_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That may take long: then the thread is another one's, and its own call would not have been sent."""
    monkeypatch.setenv("ORCALIKE_CHECK", "none")
    members = Members(2, LIMIT)
    try:
        here, there = members
        log, same = here.share(Log, "log"), there.find(Log, "log")
        door = here.share(Door, "door")
        not_held_up.append(there.find(Door, "door"))
        returned = threading.Event()

        def write(number: int) -> None:
            log.add(number)
            door.pass_through.nowait()
            returned.set()
            log.add(number + 1)

        sent_before = False
        while not sent_before:  # it may be that the call that does not wait runs the operation
            returned.clear()
            size = len(same.all())
            expected = [*range(size + 2)]
            with Gate("door") as gate:
                thread = threading.Thread(target=write, args=(size,))
                thread.start()
                gate.wait_until_reached()
                sent_before = returned.wait(0.2)
                if sent_before:
                    until(partial(has, same, expected), "the second is there before the first ends")
                gate.open()
                thread.join(LIMIT)
                assert not thread.is_alive()
            until(partial(has, same, expected), "it is there")
    finally:
        not_held_up.clear()
        members.close()


def test_others_go_on_where_an_operation_that_went_past_does_not_end(
    group: orca.Group, order: str
) -> None:
    log, door = group.share(Log, "log"), group.share(Door, "door")
    for number in range(TRIES):
        before = past(group)
        with Gate("door") as gate:
            thread = threading.Thread(target=door.pass_through)
            thread.start()
            gate.wait_until_reached()
            went_past = past(group) > before
            assert log.add(number) == number + 1
            gate.open()
            thread.join(LIMIT)
            assert not thread.is_alive()
        if went_past == (order == "RING"):
            break
    else:
        raise AssertionError("none went past")


def test_signals_have_their_handlers_after_an_error_in_the_core_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a history is kept."""
    called: list[int] = []
    monkeypatch.setenv("ORCALIKE_HISTORY", str(tmp_path))
    former = signal.signal(signal.SIGUSR2, lambda number, frame: called.append(number))
    try:
        with orca.join(stack="PACK:XFER:RING:MBRSHIP:COM:unix") as group:
            log = group.share(Log, "log")
            log.add(1)

            def fail(step: str) -> None:
                if step == "W11":
                    group._session.stack.on_mark = None
                    raise RuntimeError("planted")

            group._session.stack.on_mark = fail
            with pytest.raises((RuntimeError, orca.OrcalikeError)):
                log.add(2)
            signal.raise_signal(signal.SIGUSR2)
            assert called == [signal.SIGUSR2]
    finally:
        signal.signal(signal.SIGUSR2, former)


def test_what_another_thread_sends_meanwhile_comes_first() -> None:
    """It has no need of the core, and its number is the lower one."""
    with orca.join(stack="PACK:XFER:RING:MBRSHIP:COM:unix") as group:
        log = group.share(Log, "log")
        log.add(0)
        stack = group._session.stack

        def meanwhile(step: str) -> None:
            if step == "W1":
                stack.on_mark = None
                other = threading.Thread(target=lambda: log.add.nowait(1))
                other.start()
                other.join(LIMIT)

        before = past(group)
        stack.on_mark = meanwhile
        results: list[int] = []
        writer = threading.Thread(target=lambda: results.append(log.add(2)), daemon=True)
        writer.start()
        writer.join(LIMIT)
        assert results == [3]
        assert log.all() == [0, 1, 2]
        assert past(group) == before, "it went as others do, behind that"
