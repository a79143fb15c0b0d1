"""A guarded read is withdrawn while a thread tries its guard: it ends once, and stays in no list."""

from __future__ import annotations

import threading

import pytest

import orcalike as orca
from orcalike.runtime.call import waiting_reads
from orcalike.runtime.replica import replica_of
from orcalike.runtime.task import go_on
from tests.lib.shared_classes import Gate, pass_gate

LIMIT = 30


@orca.shared
class Count:
    """A read waits for its value."""

    def __init__(self) -> None:
        self.value = 0

    @orca.write
    def add(self) -> int:
        self.value += 1
        return self.value

    @orca.read
    def at_least(self, value: int) -> int:
        return self.value

    @at_least.when
    def _(self, value: int) -> bool:
        pass_gate("guard")  # orca: unchecked
        return self.value >= value


def reads_that_wait(count: Count) -> int:
    """How many reads wait for their guards."""
    replica = replica_of(count)
    assert replica is not None
    return len(waiting_reads(replica))


@pytest.mark.parametrize("value", [1, 2])
def test_one_that_has_waited(group: orca.Group, value: int) -> None:
    """It runs if its guard is true by then, and else it does not."""
    count = group.share(Count, "count")
    call = count.at_least.nowait(value)
    assert reads_that_wait(count) == 1
    with Gate("guard") as gate:
        writer = threading.Thread(target=count.add)
        writer.start()
        gate.wait_until_reached()
        assert call.cancel()
        assert not call.done(), "its guard is tried"
        gate.open()
        writer.join(LIMIT)
    if value == 1:
        assert call.result(LIMIT) == 1
    else:
        with pytest.raises(orca.InvocationCancelled, match="did not run and never will"):
            call.result(LIMIT)
    assert reads_that_wait(count) == 0


@pytest.mark.parametrize("value", [0, 1])
def test_one_that_comes_from_the_lock_queue(group: orca.Group, value: int) -> None:
    """It is in no list while its guard is tried for the first time."""
    count = group.share(Count, "count")
    replica = replica_of(count)
    assert replica is not None
    replica.hold(0)
    call = count.at_least.nowait(value)
    with Gate("guard") as gate:
        other = threading.Thread(target=go_on, args=(replica,))
        other.start()
        gate.wait_until_reached()
        assert call.cancel()
        gate.open()
        other.join(LIMIT)
    if value == 0:
        assert call.result(LIMIT) == 0
    else:
        with pytest.raises(orca.InvocationCancelled, match="did not run and never will"):
            call.result(LIMIT)
    assert reads_that_wait(count) == 0
    assert count.add() == 1


def test_the_group_is_left_while_its_guard_is_tried(order: str) -> None:
    with orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix") as group:
        count = group.share(Count, "count")
        replica = replica_of(count)
        assert replica is not None
        replica.hold(0)
        call = count.at_least.nowait(1)
        gate = Gate("guard")
        with gate:
            other = threading.Thread(target=go_on, args=(replica,))
            other.start()
            gate.wait_until_reached()
            group._runtime.fail_all(orca.GroupClosed("the group 'default' was left"))
            gate.open()
            other.join(LIMIT)
        with pytest.raises(orca.GroupClosed):
            call.result(LIMIT)
        assert reads_that_wait(count) == 0
