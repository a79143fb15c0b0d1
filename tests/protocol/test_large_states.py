"""The state comes whole or not at all, in pieces; whatever goes wrong with it, the giver goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime.call import waiting_calls
from orcalike.runtime.replica import LOCKED, Replica
from orcalike.session.group_calls import Drop
from tests.lib.shared_classes import Counter, Journal
from tests.protocol.sim_runtime import Participant
from tests.protocol.test_runtime_sim import Stage, replica_of

pytestmark = pytest.mark.usefixtures("order")


@orca.shared
class Odd:
    """Its state can be made one that cannot travel."""

    def __init__(self) -> None:
        self.kept: object = None
        self.count = 0

    @orca.write
    def keep_a_function(self, function: bool) -> None:
        self.kept = len if function else None

    @orca.write
    def add(self) -> int:
        self.count += 1
        return self.count


@orca.shared
class Bulk:
    """It is as large as its writes have made it."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    @orca.write
    def grow(self, count: int) -> int:
        self.parts += [b"%d" % i * 20 for i in range(count)]
        return len(self.parts)

    @orca.write
    def put(self, part: bytes) -> int:
        self.parts.append(part)
        return len(self.parts)


def transfer_of(participant: Participant) -> dict[str, Any]:
    layer = participant.stack.focus("XFER")
    assert layer is not None
    return layer.dump()


def join(stage: Stage, number: int, *, through: int = 0) -> Participant:
    """Have a member ask; whatever comes of it."""
    participant = stage.participants[number]
    stage._join(participant, stage.participants[through].node.address)
    stage.settle()
    return participant


def test_a_state_that_cannot_travel_is_refused_and_the_group_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(3)
    first, second, third = stage.participants
    odd = stage.share(first, Odd, "odd")
    counter = stage.share(first, Counter, "counter", 4)
    odd.keep_a_function.nowait(True)
    stage.settle()
    join(stage, 1)
    assert not second.inside
    assert not transfer_of(second)["complete"]
    (fault,) = [fault for fault in second.faults if "denied" in fault]
    assert "the state of 'odd', [\"kept\"]: " in fault
    assert "cannot travel" in fault
    assert caplog.text.count("a joiner does not get the state") == 1
    added = odd.add.nowait()
    counter.add.nowait(1)
    stage.settle()
    assert isinstance(added.exception(), orca.NotSerializable)  # it has run: the state is so still
    assert not any(replica_of(first, name).has(LOCKED) for name in ("odd", "counter"))
    odd.keep_a_function.nowait(False)
    stage.admit(2)
    assert len(stage.held("odd")) == len(stage.held("counter")) == 1
    assert third.inside


def refuse(donor: Any, name: str) -> None:
    """Have a member fail when it gives that object."""

    def parts_of(replica: Replica, size: int) -> Iterator[Any]:
        if replica.name == name:
            raise OSError("out of order")
        yield from given(replica, size)

    given = donor.parts.of
    donor.parts.of = parts_of


def test_a_joiner_asks_another_donor() -> None:
    stage = Stage(4)
    first, second, third, fourth = stage.participants
    counter = stage.share(first, Counter, "counter", 4)
    stage.admit(1)
    refuse(first.runtime.donor, "counter")
    counter.add.nowait(1)
    join(stage, 2)
    assert third.view is not None
    assert transfer_of(third)["tried"] == 1
    counter.add.nowait(1)
    stage.settle()
    assert len(stage.held("counter")) == 1
    found = stage.find(third, Counter, "counter").result()
    assert found.get() == 6
    refuse(second.runtime.donor, "counter")
    join(stage, 3)
    assert fourth.view is None
    assert any("out of order" in fault for fault in fourth.faults)
    assert first.inside
    assert second.inside
    assert len(stage.held("counter")) == 1


@pytest.mark.parametrize("size", [1, 3])
def test_what_cannot_be_taken_is_not_held(size: int) -> None:
    """The joiner's own fault: it is no holder, and says what went wrong."""
    stage = Stage(size + 1)
    stage.share(stage.participants[0], Counter, "counter", 4)
    for number in range(1, size):
        stage.admit(number)
    last = stage.participants[size]

    def fail(coming: object) -> None:
        raise MemoryError("too much")

    last.runtime.taker._set_state = fail  # type: ignore[method-assign]
    join(stage, size)
    assert last.view is None
    assert not transfer_of(last)["complete"]
    assert any("too much" in fault for fault in last.faults)
    assert len(stage.held("counter")) == 1
    assert all(participant.inside for participant in stage.participants[:size])


def test_a_write_to_what_is_being_given_waits_for_that_object_alone() -> None:
    stage = Stage(2)
    first, second = stage.participants
    bulk = stage.share(first, Bulk, "bulk")
    counter = stage.share(first, Counter, "counter")
    bulk.grow.nowait(2_000)
    stage.settle()
    first.runtime.donor.piece_max, first.runtime.donor.kept_max = 200, 1_000
    stage._join(second, first.node.address)
    stage.world.run(lambda: transfer_of(first)["giving"] > 0)
    held = bulk.put.nowait(b"new")
    free = counter.add.nowait(1)
    stage.world.run(lambda: free.done())
    assert not held.done()
    assert sum(len(snapshot.held) for snapshot in first.runtime.donor.snapshots) == 1
    assert all(snapshot.kept < 1_500 for snapshot in first.runtime.donor.snapshots)
    stage.settle()
    while not second.inside:
        stage.settle()
    assert held.result() == 2_001
    assert len(stage.held("bulk")) == len(stage.held("counter")) == 1


def test_nothing_waits_for_a_joiner_that_is_gone() -> None:
    stage = Stage(2)
    first, second = stage.participants
    bulk = stage.share(first, Bulk, "bulk")
    bulk.grow.nowait(2_000)
    stage.settle()
    first.runtime.donor.piece_max, first.runtime.donor.kept_max = 200, 1_000
    stage._join(second, first.node.address)
    stage.world.run(lambda: transfer_of(first)["giving"] > 0)
    held = bulk.put.nowait(b"new")
    stage.world.at(stage.world.now + 1_000_000, partial(stage.world.stop, second.node))
    for _ in range(10):
        stage.settle()
    assert held.result() == 2_001
    assert not first.runtime.donor.snapshots
    assert not replica_of(first, "bulk").has(LOCKED)


@pytest.mark.parametrize("events", range(4, 200, 14))
def test_a_donor_that_dies_midway_leaves_no_trace(events: int) -> None:
    stage = Stage(3)
    first, second, third = stage.participants
    bulk = stage.share(first, Bulk, "bulk")
    journal = stage.share(first, Journal, "journal")
    counter = stage.share(first, Counter, "counter")
    bulk.grow.nowait(50)
    counter.take.nowait(1_000)
    for participant in stage.participants:
        participant.runtime.donor.piece_max, participant.runtime.donor.kept_max = 100, 300
    stage.admit(1)
    stage._join(third, second.node.address)
    stage.world.run(lambda: transfer_of(first)["giving"] > 0)
    until = stage.world.events + events
    stage.world.run(lambda: stage.world.events >= until)
    stage.world.stop(first.node)
    for _ in range(6):
        stage.settle()
    found = stage.find(second, Bulk, "bulk").result()
    found.put.nowait(b"later")
    stage.settle()
    assert third.inside
    states = {
        participant.runtime.digest_of(replica_of(participant, "bulk"))
        for participant in (second, third)
    }
    assert len(states) == 1
    waits = [
        len(waiting_calls(replica_of(participant, "counter"))) for participant in (second, third)
    ]
    assert waits == [0, 0]  # their caller is gone
    assert journal is not None


def test_objects_that_were_ended_leave_nothing_but_their_class() -> None:
    stage = Stage(3)
    first, second, _third = stage.participants
    for number in range(300):
        counter = stage.share(first, Counter, f"counter {number}", 1)
        first.keep("", Drop(first.runtime).nowait(counter))
    del counter
    first.invocations.clear()
    first.objects.clear()
    stage.settle()
    assert not any(first.runtime.replicas)
    assert not list(first.runtime.table.remains())
    stage.admit(1)
    pieces = list(first.runtime.donor.give())
    assert sum(map(len, pieces)) < 500
    assert not any(second.runtime.replicas)


def test_a_reference_to_what_was_ended_is_one_at_each_member() -> None:
    stage = Stage(3)
    first, second, third = stage.participants
    counter = stage.share(first, Counter, "counter", 1)
    journal = stage.share(first, Journal, "journal")
    journal.refer_to.nowait(counter)
    first.keep("", Drop(first.runtime).nowait(counter))
    stage.settle()
    stage.admit(1)
    other = stage.share(second, Journal, "other")
    other.refer_to.nowait(stage.find(second, Journal, "journal").result().referred())
    stage.settle()
    stage.admit(2)
    assert len(stage.held("journal")) == len(stage.held("other")) == 1
    assert not third.faults
