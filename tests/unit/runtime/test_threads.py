"""The mutex and its lock queue, pop-up threads, and the bound on handlers (D04, D05, D07)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Self

import pytest

import orcalike as orca
from orcalike.transport.drivers.stolen import StolenTime
from tests.lib.shared_classes import Counter, Gate, Journal, pass_gate


class Reader:
    """Holds a counter's mutex in a thread of its own, by reading it."""

    def __init__(self, counter: Counter) -> None:
        self._held, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=counter.show, args=(self._hold,))
        self.saw: int | None = None

    def _hold(self, value: int) -> int:
        self._held.set()
        assert self._done.wait(30)
        self.saw = value
        return value

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._held.wait(30)
        return self

    def __exit__(self, *rest: object) -> None:
        self._done.set()
        self._thread.join(30)


def in_threads(*functions: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    return threads


def test_writes_queue_behind_a_reader_and_run_in_their_order(
    counter: Counter, journal: Journal
) -> None:
    with Reader(counter) as reader:
        writes = [counter.add.nowait(by) for by in (1, 10, 100)]
        journal.note("others go on")
        assert not any(write.done() for write in writes)
    assert reader.saw == 0
    assert [write.result() for write in writes] == [1, 11, 111]


def test_guards_behind_a_reader(counter: Counter) -> None:
    with Reader(counter):
        waiting = [counter.take.nowait(5), counter.add.nowait(7), counter.take.nowait(1)]
    assert [invocation.result() for invocation in waiting] == [2, 7, 1]


def test_a_second_reader_waits(counter: Counter) -> None:
    seen: list[int] = []
    with Reader(counter):
        second = counter.get.nowait()
        write = counter.add.nowait(5)
        third = counter.get.nowait()
        (thread,) = in_threads(lambda: seen.append(counter.get()))
        assert not second.done()
        assert not third.done()
    thread.join(30)
    assert (second.result(), write.result(), third.result()) == (0, 5, 5)
    assert len(seen) == 1


@orca.shared
class Waits:
    """A read and a write that take as long as the test wants."""

    def __init__(self) -> None:
        self.runners: list[str] = []

    @orca.read
    def look(self) -> int:
        began.set()  # orca: unchecked
        looked.wait(100)  # orca: unchecked
        return len(self.runners)

    @orca.write
    def spin(self) -> None:
        self.runners = [*self.runners, threading.current_thread().name]  # orca: unchecked
        spun.wait(100)  # orca: unchecked


began, looked, spun = threading.Event(), threading.Event(), threading.Event()


def test_a_read_with_a_time_limit_runs_no_write_of_another_thread(group: orca.Group) -> None:
    """It comes back though the write, which came during the read, does not end."""
    for event in (began, looked, spun):
        event.clear()
    waits, seen = group.share(Waits, "waits"), []
    reader = threading.Thread(
        target=lambda: seen.append(waits.look.options(timeout=50)()), name="reader"
    )
    reader.start()
    assert began.wait(100)
    call = waits.spin.nowait()
    looked.set()
    reader.join(100)
    assert seen == [0]
    assert not call.done()
    spun.set()
    call.result(100)
    (runner,) = waits.runners
    assert runner != "reader"


def test_leaving_waits_for_what_a_reader_holds_up() -> None:
    with orca.join() as group:
        counter = group.share(Counter, "counter")
        reader = Reader(counter)
        reader.__enter__()
        write = counter.add.nowait(5)
        threading.Timer(0.05, reader._done.set).start()
    assert write.result() == 5
    assert counter.get() == 5


def test_two_threads_that_wait_for_guards(counter: Counter) -> None:
    results: dict[str, int] = {}

    def take(name: str, amount: int) -> None:
        results[name] = counter.take(amount)

    threads = in_threads(lambda: take("a", 5), lambda: take("b", 50), lambda: take("c", 500))
    counter.add(555)
    for thread in threads:
        thread.join(30)
    assert sorted(results) == ["a", "b", "c"]
    assert counter.get() == 0


def test_a_bounded_buffer_between_threads(group: orca.Group) -> None:
    journal = group.share(Journal, "journal", 2)
    got: list[str] = []

    def produce(name: str) -> None:
        for i in range(100):
            journal.put(f"{name}{i}")

    def consume() -> None:
        got.extend([journal.get() for _ in range(100)])

    threads = in_threads(*[lambda n=n: produce(n) for n in "abcd"], *[consume] * 4)
    for thread in threads:
        thread.join(60)
    assert sorted(got) == sorted(f"{name}{i}" for name in "abcd" for i in range(100))
    for name in "abcd":  # each producer's own, in its order
        taken = [e.split()[-1] for e in journal.history() if " got " in e]
        assert [item for item in taken if item[0] == name] == [f"{name}{i}" for i in range(100)]


def test_reads_and_writes_from_many_threads(counter: Counter) -> None:
    seen: list[list[int]] = [[] for _ in range(4)]

    def work(values: list[int]) -> None:
        for _ in range(500):
            counter.add.nowait(1)
            values.append(counter.get())

    for thread in in_threads(*[lambda v=values: work(v) for values in seen]):
        thread.join(60)
    assert counter.add(0) == 2000
    assert all(values == sorted(values) for values in seen)


# Pop-up threads.


@orca.shared
class Failing:
    """Its operation takes as long as a test says, and raises then."""

    @orca.write
    def fail(self, why: str) -> None:
        pass_gate("slow")  # orca: unchecked
        raise ValueError(why)


def test_what_an_operation_raises_whose_thread_was_relieved_is_raised(
    group: orca.Group, counter: Counter
) -> None:
    slow = group.share(Failing, "slow")
    errors: list[str] = []

    def fail() -> None:
        with pytest.raises(ValueError, match="late") as raised:
            slow.fail("late")
        errors.append(str(raised.value))

    with Gate("slow") as gate:
        (thread,) = in_threads(fail)
        gate.wait_until_reached()
        assert counter.add.options(timeout=30)(1) == 1  # another thread receives by now
        gate.open()
        thread.join(30)
    assert errors == ["late"]
    with pytest.raises(ValueError, match="at once"):
        slow.fail("at once")


def test_a_popup_runs_in_a_thread_and_holds_the_mutex(counter: Counter, journal: Journal) -> None:
    with Gate("slow") as gate:
        slow = journal.note_slowly.nowait("slow")
        gate.wait_until_reached()
        behind = [journal.note.nowait("write"), journal.length.nowait(), journal.get.nowait("x")]
        assert counter.add(1) == 1  # other objects go on
        assert not any(invocation.done() for invocation in (slow, *behind))
        gate.open()
        assert slow.result() == "slow"
    assert behind[1].result() == 0
    journal.put("item")
    assert behind[2].result() == "item"
    assert journal.history() == ["slow", "write", "put item", "x got item"]


def test_popups_run_in_their_order(journal: Journal) -> None:
    with Gate("first") as first, Gate("second") as second:
        invocations = [journal.note_slowly.nowait(event) for event in ("first", "second", "third")]
        second.open()
        first.open()
        assert [invocation.result() for invocation in invocations] == ["first", "second", "third"]
    assert journal.history() == ["first", "second", "third"]


def test_a_popup_with_now_and_a_failure(group: orca.Group) -> None:
    slow = group.share(Slow, "slow")
    assert time.time() - 10 < slow.moment() < time.time() + 10
    with pytest.raises(ValueError, match="in a thread") as caught:
        slow.fail()
    assert caught.value.__notes__ == ["in Slow.fail of 'slow'"]
    assert slow.value() == 0
    waiting = slow.take.nowait()
    slow.put(2)
    assert waiting.result() == 1
    assert slow.take() == 0


@orca.shared
class Slow:
    """Operations that run in pop-up threads."""

    def __init__(self) -> None:
        self.count = 0

    @orca.read
    def value(self) -> int:
        return self.count

    @orca.write(popup=True)
    def moment(self) -> float:
        return orca.now()

    @orca.write(popup=True, undo=True)
    def fail(self) -> None:
        self.count = 7
        raise ValueError("in a thread")

    @orca.write
    def put(self, count: int) -> None:
        self.count += count

    @orca.write(popup=True)
    def take(self) -> int:
        self.count -= 1
        return self.count

    @take.when
    def _(self) -> bool:
        return self.count > 0


def test_guarded_popups_wake_one_after_the_other(group: orca.Group) -> None:
    slow = group.share(Slow, "slow")
    waiting = [slow.take.nowait() for _ in range(20)]
    slow.put(20)
    assert [invocation.result() for invocation in waiting] == list(range(19, -1, -1))


# The bound on handlers.

# A way past the checks at declaration, for the test's own curiosity.
here: dict[str, Callable[[], str]] = {"name": lambda: threading.current_thread().name}


@orca.shared
class Greedy:
    """An operation that takes as many rounds as its argument says."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    @orca.write
    def work(self, rounds: int) -> int:
        return sum(i * i for i in range(rounds))

    @orca.write
    def work_here(self, rounds: int) -> str:
        """The name of the thread that runs it."""
        sum(i * i for i in range(rounds))
        return here["name"]()  # orca: unchecked


ROUNDS = 1_000_000
"""Takes much longer than 5 ms on any machine."""


@pytest.fixture
def own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a host may have taken is not counted: these tests want reports on any machine."""
    monkeypatch.setattr(StolenTime, "ticks", lambda self: 0)


@pytest.mark.usefixtures("own_machine")
def test_an_operation_that_takes_too_long_is_reported(
    group: orca.Group, caplog: pytest.LogCaptureFixture
) -> None:
    greedy = group.share(Greedy, "greedy")
    for _ in range(5):
        greedy.work(1)
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING, "orcalike"):
        for _ in range(2):
            greedy.work(ROUNDS)
    (report,) = [record for record in caplog.records if "5 ms is the bound" in record.message]
    assert "Greedy.work of 'greedy'" in report.message


@pytest.mark.usefixtures("own_machine")
def test_again_and_again_it_is_promoted(
    group: orca.Group, caplog: pytest.LogCaptureFixture
) -> None:
    greedy = group.share(Greedy, "greedy")
    threads = [greedy.work_here(ROUNDS) for _ in range(6)]
    assert threads == [threading.current_thread().name] * 3 + ["orcalike pop-up"] * 3
    assert "from now on it runs in pop-up threads here" in caplog.text
