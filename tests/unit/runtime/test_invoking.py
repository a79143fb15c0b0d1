"""Invocations in the three ways: time limits, withdrawal, the window, and event loops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import threading
from collections.abc import Callable
from typing import Any, Self

import pytest

import orcalike as orca
from orcalike.runtime.call import waiting_reads
from orcalike.runtime.invocation import Invocation
from orcalike.transport.drivers.driver import Driver
from tests.lib.processes import until
from tests.lib.shared_classes import Counter, Gate, Journal, pass_gate

WINDOW = 65_536

TRIES = 50
"""Operations after which one of them has ended within the moment for which a read waits."""


def while_nothing_is_cast(group: orca.Group, function: Callable[[], object]) -> None:
    """Call `function` while the stack is busy, so that what it invokes gathers."""
    group._session.pump.call(lambda now: function())


def test_one_that_is_not_waited_for_leaves_by_itself(counter: Counter) -> None:
    for _ in range(3):  # what is alone gathers, so that another thread is to send it: each time
        invocation = counter.add.nowait(1)
        until(invocation.done, "the call is sent")
    assert counter.get() == 3


# Time limits and withdrawal.


@pytest.mark.parametrize("operation", ["take", "above"])
def test_a_time_limit_withdraws(counter: Counter, operation: str) -> None:
    with pytest.raises(orca.InvocationTimeout) as caught:
        getattr(counter, operation).options(timeout=0.01)(5)
    assert caught.value.outcome == "withdrawn"
    assert isinstance(caught.value, TimeoutError)
    assert counter.add(100) == 100
    assert counter.get() == 100


def test_a_time_limit_that_is_met(counter: Counter) -> None:
    assert counter.add.options(timeout=30)(2) == 2
    assert counter.take.options(timeout=30)(1) == 1
    assert counter.get.options(timeout=30)() == 1
    with pytest.raises(ValueError, match="a time limit of -1"):
        counter.add.options(timeout=-1)


class Struck(Driver):
    """One that is in use elsewhere, until a signal's handler raises."""

    def call_within(self, seconds: float, function: Callable[..., object], *args: object) -> bool:
        raise KeyboardInterrupt


def test_a_handler_that_raises_while_a_call_is_withdrawn_does_not_keep_it(
    group: orca.Group, counter: Counter
) -> None:
    """Ctrl-C, and once more: the call's withdrawal is on its way all the same."""
    sender = group._runtime.sender
    waiting = counter.take.nowait(5)
    driver, sender.driver = sender.driver, Struck()
    with pytest.raises(KeyboardInterrupt):
        waiting.cancel()
    sender.driver = driver
    assert counter.add(5) == 5
    with pytest.raises(orca.InvocationCancelled, match="was withdrawn"):
        waiting.result()
    assert counter.get() == 5


def test_result_with_a_time_limit_only_stops_waiting(counter: Counter) -> None:
    waiting = counter.take.nowait(5)
    with pytest.raises(TimeoutError, match="it goes on"):
        waiting.result(timeout=0.01)
    assert not waiting.done()
    counter.add(5)
    assert waiting.result(timeout=0) == 0


@pytest.mark.parametrize("operation", ["take", "above"])
def test_cancel_withdraws(counter: Counter, operation: str) -> None:
    waiting = getattr(counter, operation).nowait(5)
    assert waiting.cancel()
    with pytest.raises(orca.InvocationCancelled, match="did not run and never will"):
        waiting.result()
    assert not waiting.cancel()
    counter.add(10)
    assert counter.get() == 10


def test_cancel_of_what_has_run(counter: Counter) -> None:
    done = counter.add.nowait(5)
    assert not done.cancel()
    assert done.result() == 5


def test_what_ran_first_ends_with_its_result(group: orca.Group, counter: Counter) -> None:
    """The withdrawal is ordered behind the write that made the guard true."""
    waiting = counter.take.nowait(5)

    def cancel_too_late() -> None:
        counter.add.nowait(5)
        assert waiting.cancel()

    while_nothing_is_cast(group, cancel_too_late)
    assert waiting.result() == 0


def test_withdrawal_of_a_call_in_the_lock_queue(journal: Journal) -> None:
    """It comes behind the call, which has run by then if its guard was true."""
    with Gate("slow") as gate:
        slow = journal.note_slowly.nowait("slow")
        gate.wait_until_reached()
        runs, waits = journal.note.nowait("in time"), journal.get.nowait()
        reading, guarded = journal.length.nowait(), journal.history.nowait()
        for invocation in (runs, waits, reading):
            assert invocation.cancel()
        gate.open()
        assert slow.result() == "slow"
    assert runs.result() is None
    for invocation in (waits, reading):
        with pytest.raises(orca.InvocationCancelled):
            invocation.result()
    assert guarded.result() == journal.history() == ["slow", "in time"]


def test_cancelling_a_read_touches_no_write(counter: Counter, journal: Journal) -> None:
    """A read has no place in the order, so its withdrawal must not name one."""
    first = journal.get.nowait("first")
    with Gate("slow") as gate:
        journal.note_slowly.nowait("slow")
        gate.wait_until_reached()
        assert journal.length.nowait().cancel()
    reading = counter.above.nowait(5)
    assert reading.cancel()
    journal.put("item")
    assert first.result() == "item"


def test_an_interrupted_wait_withdraws(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in a waiting thread: the signal's handler raises out of the wait."""
    import signal

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            counter.take(5)
    finally:
        signal.signal(signal.SIGALRM, before)
    counter.add(5)
    assert counter.get() == 5


# Calls that are not waited for.


class Holding(Exception):
    """Refers to what ended with it."""

    def __init__(self, invocation: Invocation[Any]) -> None:
        super().__init__("in a cycle")
        self.invocation = invocation


@pytest.mark.parametrize(
    ("make", "name"),
    [(Invocation, "an invocation"), (lambda: Counter().add.nowait(1), "add")],
    ids=["no operation", "an operation"],
)
def test_a_failure_in_a_cycle_of_references_is_logged(
    make: Callable[[], Invocation[Any]], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What collects cycles empties the objects, in any order."""
    invocation = make()
    invocation.set_error(Holding(invocation))
    assert repr(invocation)
    del invocation
    with caplog.at_level(logging.WARNING, "orcalike"):
        gc.collect()
    assert f"{name} failed, and its outcome was not asked for: Holding('in a cycle')" in caplog.text


class StruckError(Exception):
    """What the handler of a signal raises."""


class Striking(logging.Handler):
    """Gets a signal while it logs."""

    def emit(self, record: logging.LogRecord) -> None:
        signal.raise_signal(signal.SIGUSR1)


def test_what_a_handler_raises_while_a_failure_is_logged_is_not_lost(counter: Counter) -> None:
    """A destructor logs it, and there is nothing above that an exception could go to."""

    def strike(number: int, frame: object) -> None:
        raise StruckError

    before = signal.signal(signal.SIGUSR1, strike)
    logger, handler = logging.getLogger("orcalike"), Striking()
    logger.addHandler(handler)
    held = [counter.add.nowait("no number")]  # type: ignore[arg-type]
    counter.add(1)
    try:
        with pytest.raises(StruckError):
            held.clear()
    finally:
        logger.removeHandler(handler)
        signal.signal(signal.SIGUSR1, before)


class StrikingError(Exception):
    """Gets a signal when it is copied."""

    strikes = False

    def __new__(cls, *args: object) -> Self:
        if cls.strikes:
            cls.strikes = False
            signal.raise_signal(signal.SIGUSR1)
        return super().__new__(cls, *args)


@pytest.mark.usefixtures("counter")
def test_what_a_handler_raises_while_an_outcome_is_copied_is_not_lost() -> None:
    """Whatever the exception's class raises when it is copied, the exception itself is raised."""

    def strike(number: int, frame: object) -> None:
        raise StruckError

    invocation = Invocation()  # type: ignore[var-annotated]
    invocation.set_error(StrikingError("an outcome"))
    before = signal.signal(signal.SIGUSR1, strike)
    StrikingError.strikes = True
    try:
        with pytest.raises(StruckError):
            invocation.result()
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(StrikingError, match="an outcome"):
        invocation.result()


def test_a_call_in_a_cycle_of_references_runs_though_nothing_holds_it(counter: Counter) -> None:
    holder: list[object] = [counter.take.nowait(3)]
    holder.append(holder)
    del holder
    gc.collect()
    counter.add(3)
    counter.add(1)
    assert counter.get() == 1


def test_a_withdrawn_invocation_without_a_holder_is_not_logged(
    counter: Counter, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "orcalike"):
        counter.take.nowait(5).cancel()
        gc.collect()
    assert caplog.text == ""


def test_an_invocation_that_is_let_go_still_runs(counter: Counter) -> None:
    counter.take.nowait(5)
    counter.add(5)
    assert counter.get() == 0


# The window.


async def test_a_full_window_raises_on_a_loop_until_it_is_drained() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        later: list[asyncio.Task[int]] = []

        async def add_later() -> int:
            return await counter.add.aio(1)

        def fill() -> None:
            for _ in range(WINDOW):
                counter.add.nowait(1)
            with pytest.raises(orca.WindowFull, match=r"await group\.drain"):
                counter.add.nowait(1)
            with pytest.raises(orca.WindowFull):
                group.fence.nowait()
            waiting.append(counter.add.aio(1))  # waits for room by itself

        waiting: list[object] = []
        while_nothing_is_cast(group, fill)
        await group.drain()
        later.append(asyncio.create_task(add_later()))
        assert await later[0] == WINDOW + 1
        assert await waiting[0] == WINDOW + 2  # type: ignore[misc]
        assert counter.get() == WINDOW + 2


def test_a_full_window_makes_a_thread_wait(group: orca.Group, counter: Counter) -> None:
    full, go = threading.Event(), threading.Event()

    def fill() -> None:
        for _ in range(WINDOW):
            counter.add.nowait(1)
        full.set()
        counter.add.nowait(1)  # waits here
        assert counter.get() >= WINDOW

    def hold() -> None:
        thread.start()
        assert full.wait(30)
        go.set()

    thread = threading.Thread(target=fill)
    while_nothing_is_cast(group, hold)
    thread.join(30)
    assert not thread.is_alive()
    assert go.is_set()
    assert counter.add(0) == WINDOW + 1


# Event loops.


async def test_a_group_on_a_loop() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter", 2)
        assert await counter.add.aio(3) == 5
        assert await group.find.aio(Counter, "counter") is counter
        assert counter.get() == 5  # a read that need not wait
        waiting = asyncio.create_task(take(counter, 10))
        await asyncio.sleep(0)
        assert await counter.add.nowait(5) == 10
        assert await waiting == 0
        with pytest.raises(ValueError, match="oh"):
            await counter.fail.aio("oh")
        await group.drop.aio(counter)
        with pytest.raises(orca.ObjectDropped):
            await counter.add.aio(1)


async def take(counter: Counter, amount: int) -> int:
    return await counter.take.aio(amount)


async def test_calls_that_wait_are_refused_on_a_loop() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter", 2)
        for call in (
            counter.add,
            lambda: counter.take(1),
            lambda: counter.take.options(timeout=1)(1),
            lambda: counter.above(5),
            lambda: counter.take.nowait(50).result(),
            lambda: group.share(Counter, "another"),
            lambda: group.find(Counter, "counter"),
            lambda: group.drop(counter),
            group.fence,
            group.barrier,
        ):
            with pytest.raises(orca.BlockingInLoop, match=r"aio"):
                call()
        assert counter.get() == 2
        assert counter.above(1) == 2
        with pytest.raises(TypeError, match="not a shared class"):
            await group.find.aio(dict, "another")


async def test_a_read_on_a_loop_waits_a_moment_for_the_mutex() -> None:
    """It must not fail because another thread happens to run an operation of the object."""
    async with orca.join() as group:
        journal = await group.share.aio(Journal, "journal")
        sender = group._runtime.sender
        waited, tries = False, 0
        while not waited:  # a busy machine may take longer than a moment to end an operation
            tries += 1
            assert tries <= TRIES
            with Gate("slow") as gate:
                slow = journal.note_slowly.nowait("slow")
                await asyncio.to_thread(gate.wait_until_reached)
                before = sender.reads_slow
                opener = threading.Thread(target=gate.open)
                opener.start()
                with contextlib.suppress(orca.BlockingInLoop):
                    history = journal.history()
                    waited = sender.reads_slow > before
                    assert history == ["slow"] * tries
                await asyncio.to_thread(opener.join)
                await slow


async def test_a_read_that_would_wait_long_for_the_mutex_is_refused_on_a_loop() -> None:
    async with orca.join() as group:
        journal = await group.share.aio(Journal, "journal")
        with Gate("slow") as gate:
            slow = journal.note_slowly.nowait("slow")
            await asyncio.to_thread(gate.wait_until_reached)
            with pytest.raises(orca.BlockingInLoop):
                journal.length()
            reading = asyncio.ensure_future(read_history(journal))
            await asyncio.sleep(0)
            assert not reading.done()
            gate.open()
            assert await slow == "slow"
        assert await reading == ["slow"]


@orca.shared
class Shut:
    """Its mutex can be held for a while, and it is never open."""

    def __init__(self) -> None:
        self.open = False

    @orca.write(popup=True)
    def hold(self) -> None:
        pass_gate("held")  # orca: unchecked

    @orca.read
    def enter(self) -> bool:
        return self.open

    @enter.when
    def _(self) -> bool:
        return self.open


async def test_a_read_on_a_loop_waits_for_no_guard() -> None:
    """Though it waits for the mutex: as it has that and its guard is false, it is refused."""
    async with orca.join() as group:
        shut = await group.share.aio(Shut, "shut")
        with Gate("held") as gate:
            held = shut.hold.nowait()
            await asyncio.to_thread(gate.wait_until_reached)
            opener = threading.Thread(target=gate.open)
            opener.start()
            with pytest.raises(orca.BlockingInLoop, match=r"Shut.enter .*aio"):
                shut.enter()
            await asyncio.to_thread(opener.join)
            await held
        replica = group._runtime.replicas[-1]
        assert replica is not None
        assert waiting_reads(replica) == []


async def read_history(journal: Journal) -> list[str]:
    return await journal.history.aio()


@pytest.mark.parametrize("operation", ["take", "above"])
@pytest.mark.parametrize("limited", [False, True])
async def test_a_cancelled_task_withdraws(operation: str, limited: bool) -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        bound = getattr(counter, operation)

        async def wait() -> None:
            await (bound.options(timeout=30) if limited else bound).aio(5)

        task = asyncio.create_task(wait())
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(group._runtime.waiting) == (operation == "take")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(3):
            await asyncio.sleep(0)
        assert await counter.add.aio(10) == 10
        assert counter.get() == 10


async def test_a_time_limit_in_a_coroutine() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        with pytest.raises(orca.InvocationTimeout) as caught:
            await counter.take.options(timeout=0.01).aio(5)
        assert caught.value.outcome == "withdrawn"
        with pytest.raises(orca.InvocationTimeout):
            await counter.above.options(timeout=0.01).aio(5)
        assert await counter.add.options(timeout=30).aio(5) == 5


async def test_one_invocation_awaited_by_several() -> None:
    async with orca.join() as group:
        counter = await group.share.aio(Counter, "counter")
        waiting = counter.take.nowait(1)
        tasks = [asyncio.ensure_future(wait_for(waiting)) for _ in range(3)]
        await asyncio.sleep(0)
        counter.add.nowait(1)
        assert await asyncio.gather(*tasks) == [0, 0, 0]


async def wait_for(invocation: orca.Invocation[int]) -> int:
    return await invocation


def test_threads_and_a_loop_share_one_group(group: orca.Group, counter: Counter) -> None:
    """A group that lives on a thread serves coroutines too."""

    async def main() -> int:
        waiting = asyncio.ensure_future(take(counter, 3))
        await asyncio.sleep(0)
        thread = threading.Thread(target=counter.add, args=(3,))
        thread.start()
        return await waiting

    assert asyncio.run(main()) == 0


def test_what_is_settled_while_a_coroutine_begins_to_wait_is_not_missed() -> None:
    """Another thread may settle it between the look at it and the waiting."""
    invocation: Invocation[object] = Invocation()

    class Loop(asyncio.SelectorEventLoop):
        def create_future(self) -> asyncio.Future[object]:
            if not invocation.done():
                invocation.set_result(7)
            return super().create_future()

    async def wait() -> object:
        async with asyncio.timeout(20):
            return await invocation

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(wait()) == 7


def test_a_loop_that_is_closed_by_then_is_not_notified() -> None:
    """What waited there waits no more; what settles it is not to blame."""
    invocation: Invocation[object] = Invocation()
    loop = asyncio.new_event_loop()

    async def begin() -> asyncio.Task[object]:
        async def wait() -> object:
            return await invocation

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        return task

    waiting = loop.run_until_complete(begin())
    loop.close()
    invocation.set_result(7)
    assert invocation.done()
    assert not waiting.done()
    waiting.get_coro().close()
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]  # it is to be, here alone


def test_the_outcome_comes_while_the_limit_is_read(counter: Counter) -> None:
    class Limit(float):
        def __ge__(self, other: float) -> bool:
            counter.add()  # as another thread may, between any two instructions of Python code
            return super().__ge__(other)

    assert counter.above.nowait(0).result(Limit(100.0)) == 1
