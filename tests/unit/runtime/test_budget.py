"""The bound on handlers counts what an operation used, on a clock that the test drives (D07)."""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import numpy
import pytest

import orcalike as orca
from orcalike.runtime import extension_types
from orcalike.runtime.assemble import make_runtime
from orcalike.runtime.budget import RETURNS_AFTER
from orcalike.runtime.marshal import Codec
from orcalike.session.group_calls import Share
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.driver import on_collection, worked
from orcalike.transport.drivers.simdriver import SimDriver
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member

MS = 1_000_000
SECOND = 1_000 * MS


class Machine:
    """One member, alone, and the clock of its world."""

    def __init__(self) -> None:
        self.now = 10**9
        self.world = self  # a driver asks its node for its world
        me = Member("sim:0", 1)
        self.stack = Stack(
            parse_stack("PACK:XFER:TOTAL:MBRSHIP:COM:sim"), StackConfig("g", epoch=10**18), me, 1
        )
        self.threads = 0
        self.stolen = 0
        self.runtime = make_runtime(
            self.stack, 1, cast(Any, Quiet()), time=lambda: self.now, host=self
        )
        self.driver = self.runtime.sender.driver = SimDriver(cast(Any, self))
        self.runtime.start_thread = self.start
        self.stack.above = self.runtime
        self.stack.join("", self.now)
        self.kicked = False

    def start(self, function: Callable[[], None]) -> None:
        """A pop-up thread, which runs at once."""
        self.threads += 1
        function()

    def kick(self) -> None:
        """There is something in PACK."""
        self.kicked = True

    def move(self) -> None:
        """One input."""
        self.now += 10_000
        self.stack.flush_packets(self.now)

    def call(self, input_: Callable[[int], None]) -> None:
        """One input of the stack."""
        input_(self.now)

    def ticks(self) -> int:
        """What the host took, as the kernel says: in ticks of 10 ms."""
        return self.stolen // (10 * MS)

    def most_since(self, before: int) -> int:
        """What it may have taken since."""
        return (self.ticks() - before + 1) * 10 * MS if self.ticks() else 0

    def steal(self, span: int) -> None:
        """The host takes the processor, and the kernel charges that to the operation."""
        self.now += span
        self.stolen += span

    def spend(self, span: int, away: int, asleep: int) -> None:
        """The time passes while an operation runs."""
        self.now += span
        self.driver.away += away
        self.driver.asleep += asleep

    def share(self) -> Slow:
        """A shared object whose operations drive the clock."""
        invocation = Share(self.runtime).nowait(Slow, "slow")
        self.move()
        shared = invocation.result()
        self.move()
        return shared

    def run(self, *calls: Callable[[], orca.Invocation[None]]) -> int:
        """Calls that leave together, in one packet; returns how many threads they took."""
        before = self.threads
        for call in calls:
            call()
        self.move()
        return self.threads - before


class Quiet:
    """Events that do not matter."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words: None


machine: Machine
spend: dict[str, Callable[[int, int, int], None]] = {}


@orca.shared
class Slow:
    """Operations that take as long as their argument says, in ns."""

    @orca.write
    def work(self, span: int) -> None:
        """On the processor."""
        spend["time"](span, 0, 0)  # orca: unchecked

    @orca.write
    def stand_still(self, span: int) -> None:
        """While the collector, another thread, or another process has the processor."""
        spend["time"](span, span, 0)  # orca: unchecked

    @orca.write
    def sleep(self, span: int) -> None:
        """While nothing in this process does anything."""
        spend["time"](span, span, span)  # orca: unchecked

    @orca.write
    def lose(self, span: int) -> None:
        """While the host of the machine has the processor."""
        machine.steal(span)  # orca: unchecked


@pytest.fixture(autouse=True)
def _machine(caplog: pytest.LogCaptureFixture) -> None:
    global machine
    machine = Machine()
    spend["time"] = machine.spend
    caplog.set_level(logging.INFO, "orcalike")


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said of operations that took too long."""
    return [r.getMessage() for r in caplog.records if "5 ms is the bound" in r.getMessage()]


def test_the_first_slow_call_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    machine.run(lambda: slow.work.nowait(300 * MS))
    (report,) = reports(caplog)
    assert "Slow.work of 'slow' ran for 300.0 ms" in report
    assert "pop-up" not in report


def test_the_third_in_a_minute_promotes_it(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    assert [machine.run(lambda: slow.work.nowait(6 * MS)) for _ in range(5)] == [0, 0, 0, 1, 1]
    assert ["pop-up" in report for report in reports(caplog)] == [False, True]


def test_three_in_more_than_a_minute_do_not(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    for _ in range(6):
        assert machine.run(lambda: slow.work.nowait(6 * MS)) == 0
        machine.now += 31 * SECOND


def test_it_comes_back_when_it_keeps_within_the_bound(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    for _ in range(3):
        machine.run(lambda: slow.work.nowait(6 * MS))
    for _ in range(RETURNS_AFTER - 1):
        assert machine.run(lambda: slow.work.nowait(1 * MS)) == 1
    assert machine.run(lambda: slow.work.nowait(6 * MS)) == 1  # it begins to count anew
    for _ in range(RETURNS_AFTER):
        assert machine.run(lambda: slow.work.nowait(1 * MS)) == 1
    assert machine.run(lambda: slow.work.nowait(1 * MS)) == 0
    assert "runs where messages are received again" in caplog.text
    # And it may be promoted again, after as many times as before.
    assert [machine.run(lambda: slow.work.nowait(6 * MS)) for _ in range(4)] == [0, 0, 0, 1]


def test_what_others_did_meanwhile_is_not_its_fault(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    for _ in range(40):
        assert machine.run(lambda: slow.stand_still.nowait(1 * SECOND)) == 0
        assert machine.run(lambda: slow.work.nowait(1 * MS)) == 0
    assert reports(caplog) == []


def test_each_packet_is_watched_only_after_one_that_may_have_been_slow() -> None:
    slow = machine.share()
    for _ in range(
        3
    ):  # each look is a system call, which a busy machine is not to cost its writers
        machine.run(lambda: slow.stand_still.nowait(100 * MS))
        machine.run(lambda: slow.work.nowait(1 * MS))
    assert machine.runtime.budget.watched_until == 0
    machine.run(lambda: slow.work.nowait(6 * MS))
    assert machine.runtime.budget.watched_until == machine.now + 60 * SECOND


def test_what_the_host_took_is_not_its_fault(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    machine.steal(SECOND)  # long before
    for span in (6, 9, 11, 60, 300):
        for _ in range(4):
            taken = machine.run(lambda: slow.lose.nowait(span * MS))  # noqa: B023 - it runs at once
            assert taken == 0
            machine.now += SECOND // 20  # the account is read every tenth of a second only
    assert reports(caplog) == []


def test_one_that_is_slow_beside_a_host_that_takes_some_is_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = machine.share()
    machine.steal(300 * SECOND)  # long before
    machine.now += SECOND
    taken = [machine.run(lambda: slow.work.nowait(16 * MS)) for _ in range(4)]
    assert taken == [0, 0, 0, 1]
    # What may have been taken, a tick that is not over, is not in it.
    assert "Slow.work of 'slow' ran for 6.0 ms" in reports(caplog)[0]


def test_what_the_host_took_does_not_keep_it_in_pop_up_threads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slow = machine.share()
    for _ in range(3):
        machine.run(lambda: slow.work.nowait(6 * MS))
    for _ in range(RETURNS_AFTER):
        assert machine.run(lambda: slow.work.nowait(1), lambda: slow.lose.nowait(20 * MS)) == 1
    assert machine.run(lambda: slow.work.nowait(1 * MS)) == 0


def test_one_that_waits_is_found_when_it_does_so_again(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    taken = [machine.run(lambda: slow.sleep.nowait(300 * MS)) for _ in range(5)]
    assert taken == [0, 0, 0, 0, 1]
    assert "Slow.sleep of 'slow' ran for 300.0 ms" in reports(caplog)[0]
    for _ in range(2 * RETURNS_AFTER):  # it stays in pop-up threads
        assert machine.run(lambda: slow.sleep.nowait(300 * MS)) == 1


def test_of_several_in_a_packet_the_right_one_is_found(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    for _ in range(4):
        machine.run(
            lambda: slow.stand_still.nowait(1),
            lambda: slow.work.nowait(6 * MS),
            lambda: slow.stand_still.nowait(1),
        )
    assert machine.run(lambda: slow.work.nowait(1)) == 1
    assert machine.run(lambda: slow.stand_still.nowait(1)) == 0
    assert all("Slow.work" in report for report in reports(caplog))


def test_many_short_ones_in_a_packet_are_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    slow = machine.share()
    for _ in range(5):
        assert machine.run(*(lambda: slow.work.nowait(1 * MS) for _ in range(20))) == 0
    assert reports(caplog) == []


def test_collections_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_collection in gc.callbacks
    on_collection("start", {})
    before = worked()
    burnt = sum(i * i for i in range(300_000))
    on_collection("stop", {})
    in_collection = worked() - before
    before = worked()
    burnt += sum(i * i for i in range(300_000))
    assert worked() - before > 10 * in_collection
    assert burnt


@pytest.mark.parametrize("value", [UUID(int=7), numpy.arange(3)], ids=["standard", "numpy"])
def test_modules_that_a_value_needs_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    burnt = []

    def load(name: str) -> object:
        burnt.append(sum(i * i for i in range(300_000)))
        return sys.modules[name]

    codec = Codec(lambda value: None, lambda number: None)
    data = codec.encode([value], "a value")
    extension_types._standard.cache_clear()
    monkeypatch.setattr(importlib, "import_module", load)
    before = worked()
    codec.decode(data)
    in_loading = worked() - before
    before = worked()
    load("sys")
    assert len(burnt) == 2
    assert worked() - before > 10 * in_loading
