"""Guards: how often they are tested, and what may come in the midst of one (D05, D08)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.runtime.call import waiting_calls
from orcalike.runtime.replica import LOCKED, QUEUED, Replica, replica_of
from tests.lib.processes import DEADLINE, until
from tests.lib.programs import OVER_SOCKETS

tested: list[tuple[str, bool]] = []
meanwhile: list[Callable[[], None]] = []
"""What another thread does in the midst of a test, or as a result is let go."""
began, ends = threading.Event(), threading.Event()


class Ticket:
    """A result for which nothing waits."""

    def __del__(self) -> None:
        if meanwhile:
            meanwhile.pop()()


@orca.shared
class Door:
    """Each test of a guard is noted; one of a call that is "slow" takes until `ends` is set, the first time."""

    def __init__(self) -> None:
        self.open = False
        self.passed: list[str] = []

    def _is_open(self, what: str) -> bool:
        found = self.open
        tested.append((what, found))  # orca: unchecked
        if what.startswith("slow") and not began.is_set():  # orca: unchecked
            began.set()  # orca: unchecked
            ends.wait(DEADLINE)  # orca: unchecked
        if meanwhile and what == "meanwhile":  # orca: unchecked
            meanwhile.pop()()  # orca: unchecked
        if what == "fails":
            raise ValueError(what)
        return found

    @orca.write
    def set(self, is_open: bool) -> None:
        self.open = is_open

    @orca.write
    def open_it(self) -> Ticket:
        self.open = True
        return Ticket()

    @orca.read
    def all(self) -> list[str]:
        return [*self.passed]

    @orca.write
    def go(self, what: str, by: int = 0) -> tuple[str, int]:
        self.passed.append(what)
        return what, by

    @go.when
    def _(self, what: str, by: int = 0) -> bool:
        return self._is_open(what)

    @orca.read
    def look(self, what: str) -> list[str]:
        return [*self.passed, what]

    @look.when
    def _(self, what: str) -> bool:
        return self._is_open(what)


@pytest.fixture
def door(group: orca.Group) -> Door:
    return door_of(group)


def door_of(group: orca.Group) -> Door:
    tested.clear()
    meanwhile.clear()
    began.clear()
    ends.clear()
    return group.share(Door, "door")


def replica_at(door: Door) -> Replica:
    found = replica_of(door)
    assert found is not None
    return found


def is_abandoned(door: Door) -> bool:
    """Whether a call queues for its mutex, which nothing has, and so nothing will hand on."""
    replica = replica_at(door)
    return not replica.has(LOCKED) and replica.has(QUEUED)  # in that order: no call comes any more


class InThread:
    """A call on a thread of its own, and what it returns."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._found: list[object] = []
        self._thread = threading.Thread(target=lambda: self._found.append(call()), daemon=True)
        self._thread.start()

    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> object:
        self._thread.join(DEADLINE)
        return self._found[0]


def test_a_guard_that_holds_is_tested_once(door: Door) -> None:
    door.set(True)
    assert door.go("first", 7) == ("first", 7)
    assert door.go.nowait("second").result(DEADLINE) == ("second", 0)
    assert door.look("last") == ["first", "second", "last"]
    assert tested == [("first", True), ("second", True), ("last", True)]


def test_a_guard_that_is_false_is_tested_once_and_after_each_write(
    group: orca.Group, door: Door
) -> None:
    write = door.go.nowait("write", 7)
    group.fence()
    read = InThread(lambda: door.look("read"))
    until(lambda: len(tested) == 2, "the read has not tested its guard")
    assert tested == [("write", False), ("read", False)]
    door.set(False)
    assert tested[2:] == [("write", False), ("read", False)]
    door.set(True)
    assert write.result(DEADLINE) == ("write", 7)
    assert read.result() == ["write", "read"]
    assert tested[4:] == [("write", True), ("read", True)]


@pytest.mark.parametrize("how", ["go", "look"])
def test_a_guard_that_raises_ends_the_call(door: Door, how: str) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="fails"):
            getattr(door, how)("fails")
    door.set(True)
    assert door.go("next") == ("next", 0)
    assert door.look("last") == ["next", "last"]


@pytest.mark.parametrize("holds", [True, False])
def test_another_thread_receives_while_a_guard_is_tested(
    group: orca.Group, door: Door, holds: bool
) -> None:
    other = group.share(Door, "other")
    door.set(holds)
    slow = InThread(lambda: door.go("slow", 7))
    assert began.wait(DEADLINE)
    behind = door.set.nowait(True)
    for is_open in (False, True):
        other.set.options(timeout=DEADLINE)(is_open)  # the object whose guard it is waits alone
    assert not behind.done()
    ends.set()
    assert slow.result() == ("slow", 7)
    behind.result(DEADLINE)
    assert door.look("last") == ["slow", "last"]
    assert tested[:-1] == ([("slow", True)] if holds else [("slow", False), ("slow", True)])


def test_a_call_that_waits_after_that_counts_as_any_other(group: orca.Group, door: Door) -> None:
    """Members whose threads were and were not relieved of it are to refuse the same calls."""
    slow = InThread(lambda: door.go("slow", 7))
    assert began.wait(DEADLINE)
    group.share(Door, "other").set.options(timeout=DEADLINE)(True)
    ends.set()
    behind = door.go.nowait("also", 7)
    group.fence()
    until(lambda: len(waiting_calls(replica_at(door))) == 2, "not both of them wait")
    assert len({call.size for call in waiting_calls(replica_at(door))}) == 1
    assert waiting_calls(replica_at(door))[0].size > len("slow")
    door.set(True)
    assert slow.result() == ("slow", 7)
    assert behind.result(DEADLINE) == ("also", 7)


def test_a_write_that_comes_while_a_read_tests_its_guard_is_served(order: str) -> None:
    # In a block of its own, which does not wait for what is abandoned if this fails.
    with orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group:
        door = door_of(group)
        read = InThread(lambda: door.look("slow"))
        assert began.wait(DEADLINE)
        write = door.set.nowait(True)
        until(lambda: replica_at(door).has(QUEUED), "the write has not come")
        ends.set()
        until(
            lambda: read.is_over() or is_abandoned(door), "neither the read ends nor does it wait"
        )
        assert not is_abandoned(door)
        assert read.result() == ["slow"]
        write.result(DEADLINE)
        assert tested == [("slow", False), ("slow", True)]


@pytest.mark.parametrize("order", ["TOTAL"])  # in shared memory a read waits until all has run
def test_a_read_that_comes_while_a_write_tests_its_guard_is_served(order: str) -> None:
    with orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group:
        door = door_of(group)
        for _ in range(20):  # another thread may take this one's place, which then serves it
            assert read_meanwhile(door) == []


def read_meanwhile(door: Door) -> object:
    """What a read shows that comes in the midst of the test of a guard which does not hold."""
    read = comes_meanwhile(door)
    door.go.nowait("meanwhile")
    until(lambda: read, "the guard was not tested")
    until(lambda: read[0].is_over() or is_abandoned(door), "it neither ends nor waits")
    assert not is_abandoned(door)
    return read[0].result()


def test_a_read_that_comes_as_a_write_ends_shows_what_the_write_has_woken(tmp_path: Path) -> None:
    """What another member's write returns is let go before calls that wait are tried; the object is not free in between."""
    listen = f"unix:{tmp_path}/a"
    with (
        orca.join(listen=listen, stack=OVER_SOCKETS) as here,
        orca.join(seeds=listen, stack=OVER_SOCKETS) as there,
    ):
        door = door_of(here)
        waits = door.go.nowait("waits")
        here.fence()
        read = comes_meanwhile(door)
        result = there.find(Door, "door").open_it()
        assert waits.result(DEADLINE) == ("waits", 0)
        assert read[0].result() == ["waits"]
        assert isinstance(result, Ticket)


def comes_meanwhile(door: Door) -> list[InThread]:
    """Have another thread read in the midst of what comes next; its read will be in the list."""
    reads: list[InThread] = []

    def read() -> None:
        reads.append(InThread(door.all))
        until(lambda: reads[0].is_over() or replica_at(door).has(QUEUED), "the read has not come")

    meanwhile.append(read)
    return reads


def test_where_no_write_can_come_a_read_with_a_guard_says_so(group: orca.Group, door: Door) -> None:
    """Also if its guard holds; one without shows the last state."""
    door.set(True)
    assert door.look("is") == ["is"]
    group._runtime.bar(orca.NotPrimary("the group is blocked"))
    with pytest.raises(orca.NotPrimary):
        door.look("was")
    assert door.all() == []


def test_a_read_is_no_task_because_another_call_waits_there(door: Door) -> None:
    """It takes as long as at an object where nothing waits, but for a look."""
    waiting = door.go.nowait("waits")
    sender = replica_at(door).invoker
    before = sender.reads_slow
    door.open = True
    assert door.look("at once") == ["at once"]
    assert sender.reads_slow == before
    door.set(True)
    assert waiting.result(DEADLINE) == ("waits", 0)
