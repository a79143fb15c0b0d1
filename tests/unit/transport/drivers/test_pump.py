"""What a thread has the pump do within a time limit: another thread does it, and it is not done late."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.driver import Waitable
from orcalike.transport.drivers.pump import Pump
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from tests.lib.end import End
from tests.lib.processes import DEADLINE, until
from tests.lib.recording_application import RecordingApplication
from tests.protocol.test_bad_frames import hello

SHORT = 0.05


@pytest.fixture
def pump() -> Iterator[Pump]:
    """A pump that has a thread of its own."""
    made = Pump()
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    until(lambda: made.thread is thread)
    yield made
    made.stopped = True
    made.ring()
    assert made.thread is not None
    made.thread.join(DEADLINE)
    made.close_all()
    assert made.failure is None


def test_what_has_a_time_limit_is_done_by_the_pumps_own_thread(pump: Pump) -> None:
    """With it go packets of other threads, whose operations may not end."""
    ran: list[threading.Thread] = []
    assert pump.call_within(DEADLINE, lambda now: ran.append(threading.current_thread()))
    assert ran == [pump.thread]


def test_it_returns_where_it_does_not_end(pump: Pump) -> None:
    """The caller goes on, and what it has begun as well."""
    ends, ended = threading.Event(), threading.Event()

    def stand_still(now: int) -> None:
        ends.wait(DEADLINE)
        ended.set()

    assert not pump.call_within(SHORT, stand_still)
    assert not ended.is_set()
    ends.set()
    assert ended.wait(DEADLINE)


def test_what_has_not_begun_in_time_is_never_done(pump: Pump) -> None:
    """Its caller was notified that it is not done."""
    begun, ends, done = threading.Event(), threading.Event(), threading.Event()
    late: list[int] = []

    def stand_still(now: int) -> None:
        begun.set()
        ends.wait(DEADLINE)

    pump.later(lambda: pump.call(stand_still))
    assert begun.wait(DEADLINE)
    assert not pump.call_within(SHORT, late.append)
    ends.set()
    pump.later(done.set)
    assert done.wait(DEADLINE)
    assert late == []


def test_what_it_raises_too_late_is_in_the_log(
    pump: Pump, caplog: pytest.LogCaptureFixture
) -> None:
    """Its caller has gone on."""
    ends, done = threading.Event(), threading.Event()

    def slip(now: int) -> None:
        ends.wait(DEADLINE)
        raise LookupError("as planned")

    assert not pump.call_within(SHORT, slip)
    ends.set()
    pump.later(done.set)
    assert done.wait(DEADLINE)
    assert "has taken longer than its time limit has failed" in caplog.text
    assert "as planned" in caplog.text


def test_what_it_raises_is_the_callers(pump: Pump) -> None:
    """The pump goes on."""

    def slip(now: int) -> None:
        raise LookupError("as planned")

    with pytest.raises(LookupError, match="as planned"):
        pump.call_within(DEADLINE, slip)
    assert pump.call_within(DEADLINE, lambda now: None)


def test_a_thread_that_polls_is_counted_until_what_it_waits_for_is_done(pump: Pump) -> None:
    """The input that ends its wait sets no alarm for it, which would wake the pump's own thread in vain."""
    me = Member("unix:/nowhere", 1)
    stack = Stack(parse_stack("RING:MBRSHIP:COM:unix"), StackConfig("group"), me, 1)
    stack.above = RecordingApplication(stack)
    pump.call(lambda now: pump.add(stack))
    base = stack.waiting
    waitable, counts = Waitable(), [base]

    def end_wait(now: int) -> None:
        counts.append(stack.waiting)
        waitable.finish()
        counts.append(stack.waiting)

    def end_it() -> None:
        until(lambda: stack.waiting > base)
        pump.call(end_wait)

    other = threading.Thread(target=end_it)
    other.start()
    assert pump.attend(waitable, DEADLINE)
    other.join()
    assert counts == [base, base + 1, base]
    assert stack.waiting == base


class Broken(Stack):
    """One that fails as it casts."""

    def flush_packets(self, now: int) -> None:
        raise ZeroDivisionError("as it cast")


@pytest.mark.parametrize("spoils", [False, True])
def test_what_fails_while_it_is_sent_ends_the_group_and_holds_up_no_thread(spoils: bool) -> None:
    """A packet may be in the order, and not be handed up here: nothing can be promised after that."""
    logged: list[str] = []
    pump = Pump(lambda level, text: logged.append(text))

    def on_failure(error: Exception) -> None:
        if spoils:
            raise ValueError("in what is called then")

    pump.on_failure = on_failure
    me = Member("sim:0", 1)
    pump.add(Broken(parse_stack("XFER:TOTAL:MBRSHIP:COM:sim"), StackConfig("group", {}), me, 1))
    with pytest.raises(ValueError if spoils else ZeroDivisionError):
        pump.attend(Waitable(), SHORT)
    assert isinstance(pump.failure, ZeroDivisionError)
    assert logged == ["orcalike failed: ZeroDivisionError('as it cast')"]
    done: list[int] = []
    other = threading.Thread(target=lambda: pump.call(done.append), daemon=True)
    other.start()
    other.join(DEADLINE)
    assert len(done) == 1
    pump.close_all()


def test_what_is_to_be_called_later_and_fails_ends_the_group() -> None:
    """It does not only end the thread."""
    made = Pump()
    failures: list[BaseException] = []
    made.on_failure = failures.append

    def fail() -> None:
        raise OSError("no room")

    made.later(fail)
    with pytest.raises(OSError, match="no room"):
        made.handle()
    assert [str(error) for error in failures] == ["no room"]
    made.close_all()


def test_what_a_thread_puts_out_that_comes_back_late_is_dropped() -> None:
    """All was closed meanwhile."""
    end = End("tcp:127.0.0.1:0")
    sock = end.connect()
    sock.sendall(hello("group", "", 77))
    end.until(lambda: end.stack.dump()["COM"]["peers"])

    def leave(now: int) -> None:
        end.pump.close_all()
        end.stack.leave(now)
        end.stack.out.connects.append("tcp:127.0.0.1:1")
        for link in range(8):
            end.stack.out.closes.append(link)

    end.pump.call(leave)
    assert end.pump.failure is None
    assert end.stack.out.connects == []
    assert end.stack.out.closes == []
    assert end.is_closed(sock)
    sock.close()


def member_over_memory(incarnation: int) -> Stack:
    config = StackConfig("g", {"resilience": 0})
    member = Member("unix:/none", incarnation, None, witness=True)
    return Stack(parse_stack("RING:MBRSHIP:COM:unix"), config, member, incarnation)


def test_a_stack_that_is_served_already_takes_the_place_of_another_one() -> None:
    """As when a witness joins again. Its alarm is watched once, and no thread is counted twice."""
    pump, old, new = Pump(), member_over_memory(1), member_over_memory(2)
    for stack in (old, new):
        pump.add(stack)
    pump.replace(old, new)
    assert new.waiting == 1
    pump.close_all()


def test_a_stack_takes_over_the_count_of_threads_from_another_one() -> None:
    pump, old, new = Pump(), member_over_memory(1), member_over_memory(2)
    pump.add(old)
    pump.replace(old, new)
    assert new.waiting == 1
    pump.close_all()
