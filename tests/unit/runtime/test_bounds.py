"""What may wait at one object: for its guard, for its mutex, and for its class (promise 15)."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Any

import pytest

import orcalike as orca
from orcalike.messages import create_group, leave_group, send_to_group
from orcalike.runtime.call import waiting_calls
from orcalike.runtime.codes import Code
from orcalike.runtime.task import queued_at
from orcalike.session.group_calls import Share, Whole
from orcalike.session.message_inbox import ENDED
from orcalike.transport.record import replaced
from orcalike.transport.wire.message import Message
from tests.instructions.workload import Network, Node

MIB = 1 << 20
WAITING_MAX = 65_536


@orca.shared
class Gate:
    """What comes waits until it is open, or runs in a thread until that is let go."""

    def __init__(self) -> None:
        self.open = False
        self.passed: list[int] = []

    @orca.write
    def go_through(self, data: bytes) -> int:
        self.passed.append(len(data))
        return len(data)

    @go_through.when
    def _(self, data: bytes) -> bool:
        return self.open

    @orca.write
    def put(self, data: bytes) -> None:
        self.passed.append(len(data))

    @orca.write
    def set_open(self) -> None:
        self.open = True

    @orca.write(popup=True)
    def stand(self) -> None:
        """Until the test lets it go on."""
        standing["wait"]()

    @orca.read
    def lengths(self) -> list[int]:
        return list(self.passed)


@orca.atomic
def go_through_both(first: Gate, second: Gate, data: bytes) -> int:
    """Waits at both of them."""
    return first.go_through(data) + second.go_through(data)


@go_through_both.when
def _(first: Gate, second: Gate, data: bytes) -> bool:
    return first.open and second.open


standing: dict[str, Any] = {}


# Guards.


def test_so_many_calls_wait_for_a_guard_and_no_more(group: orca.Group) -> None:
    """One write wakes them all, in their order; that takes time in proportion to how many there are.

    One in four waits for another object, too.
    """
    gate, other = group.share(Gate, "gate"), group.share(Gate, "other")
    sizes = [n % 7 for n in range(WAITING_MAX)]
    calls = [
        gate.go_through.nowait(bytes(size))
        if n % 4
        else go_through_both.nowait(gate, other, bytes(size))
        for n, size in enumerate(sizes)
    ]
    with pytest.raises(orca.TooManyWaiting, match=r"'gate': 65536 calls wait"):
        gate.go_through(b"")
    with pytest.raises(orca.TooManyWaiting):
        gate.go_through.options(timeout=60)(b"")
    with pytest.raises(orca.TooManyWaiting):
        go_through_both(gate, other, b"")
    calls.pop(1).cancel()
    calls.append(gate.go_through.nowait(bytes(sizes.pop(1))))  # there is a place again
    sizes.append(1)
    other.set_open()
    assert not any(call.done() for call in calls)
    gate.set_open()
    group.fence()  # if another thread receives by now, it may still run what that has woken
    assert all(call.done() for call in calls)
    assert gate.lengths() == sizes
    assert other.lengths() == [n % 7 for n in range(0, WAITING_MAX, 4)]


def test_calls_that_wait_for_a_guard_end_with_their_object(
    group: orca.Group, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "orcalike")  # each of them fails at the end
    gate = group.share(Gate, "gate")
    calls = [gate.go_through.nowait(b"") for _ in range(WAITING_MAX)]
    group.drop(gate)
    assert all(isinstance(call.exception(), orca.ObjectDropped) for call in calls)


class Members(Network):
    """Three members, and those that come later."""

    def one_more(self) -> Node:
        """Another one joins."""
        node = Node(self, len(self.nodes))
        self.nodes.append(node)
        node.stack.join("sim:0", self.now)
        self.move()
        return node

    def gates(self, name: str) -> list[Gate]:
        """The replicas of one object."""
        made = [Share(node.runtime).nowait(Gate, name) for node in self.nodes]
        self.move()
        return [call.result() for call in made]

    def waiting(self, name: str) -> list[list[tuple[Any, int, int]]]:
        """The calls that wait for their guards at each member: caller, ticket, bytes."""
        found = []
        for node in self.nodes:
            (replica,) = [each for each in node.runtime.replicas if each and each.name == name]
            found.append([(call.source, call.ticket, call.size) for call in waiting_calls(replica)])
        return found


@pytest.mark.usefixtures("order")
def test_every_replica_refuses_the_same_calls() -> None:
    members = Members()
    gates, others = members.gates("gate"), members.gates("other")
    calls: list[orca.Invocation[int]] = []
    for turn in range(6):
        for gate, other in zip(gates, others, strict=True):
            calls.append(gate.go_through.nowait(bytes(MIB // 2)))
            if turn == 0:
                calls.append(go_through_both.nowait(gate, other, bytes(MIB)))
        members.move()
    refused = [call for call in calls if call.done()]
    assert 0 < len(refused) < len(calls)
    assert all(isinstance(call.exception(), orca.TooManyWaiting) for call in refused)
    before = members.waiting("gate")
    assert before[0] == before[1] == before[2]
    assert 7 * MIB < sum(size for _, _, size in before[0]) <= 8 * MIB
    # One that joins counts as the others do.
    newcomer = members.one_more()
    joined = Share(newcomer.runtime).nowait(Gate, "gate")
    members.move()
    more = [joined.result().go_through.nowait(bytes(MIB // 2)), gates[0].go_through.nowait(b"x")]
    members.move()
    assert isinstance(more[0].exception(), orca.TooManyWaiting)
    assert not more[1].done()
    after = members.waiting("gate")
    assert after[0] == after[1] == after[2] == after[3]
    assert len(after[0]) == len(before[0]) + 1
    # And all that wait go through.
    for opened in (gates[1].set_open.nowait(), others[2].set_open.nowait()):
        members.move()
        opened.result()
    members.move()
    assert all(call.done() for call in calls)
    assert members.waiting("gate") == [[], [], [], []]
    lengths = [gate.lengths() for gate in (*gates, joined.result())]
    assert len(lengths[0]) == len(after[0])
    assert all(each == lengths[0] for each in lengths)


# What the group itself keeps.


def test_so_many_finds_wait_and_no_more(group: orca.Group) -> None:
    calls = [group.find.nowait(Gate, "nothing") for _ in range(WAITING_MAX)]
    more = group.find.nowait(Gate, "nothing")
    with pytest.raises(orca.TooManyWaiting, match="65536 finds wait"):
        more.result()
    gate = group.share(Gate, "nothing")
    assert all(call.result() is gate for call in calls)


def test_of_the_ranks_that_have_ended_only_those_are_kept_that_a_program_can_have(
    group: orca.Group,
) -> None:
    runtime = group._runtime

    def end(*ranks: object) -> orca.Invocation[Any]:
        return runtime.sender.invoke_group(Code.ENDED, ranks, "the end of a rank")

    end(3, 1, 1023)
    for wrong in (-1, 1024, 1 << 63, True, "1", None, [1]):
        with pytest.raises(orca.ProtocolError, match="no rank"):
            end(2, wrong).result(timeout=30)
    assert runtime.manager.ended == {1, 3, 1023}


def test_a_message_group_takes_no_rank_that_a_program_cannot_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = create_group()
    try:
        for ranks in (b"\x03", b"\xcd\x04\x00", b"\xa1x", b"\x91\x02", b"\xc1"):
            group._session.pump.call(group._session.stack.cast, Message(ENDED + ranks))
        send_to_group(group, b"after")
        assert group._session.ended_ranks == {3}
    finally:
        leave_group(group)
    assert caplog.text.count("sent what is no message") == 4


def test_so_many_classes_of_ended_objects_are_remembered_and_no_more(group: orca.Group) -> None:
    table = group._runtime.table
    table.ended_classes = {(f"class {number}", b""): number for number in range(1, 65536)}
    group.drop(group.share(Gate, "gate"))
    assert len(table.ended_classes) == 65535
    assert list(table.ended_objects) == []


@pytest.mark.usefixtures("order")
def test_so_many_arrivals_wait_at_the_barrier_and_no_more() -> None:
    members = Members()
    first, *others = (Whole(node.runtime, Code.BARRIER) for node in members.nodes)
    calls = []
    for _ in range(16):
        calls += [first.nowait() for _ in range(WAITING_MAX // 16)]
        members.move()
    more = first.nowait()
    members.move()
    with pytest.raises(orca.TooManyWaiting, match="at the barrier already"):
        more.result()
    calls += [barrier.nowait() for barrier in others]
    members.move()
    assert all(call.done() for call in calls)
    again = [barrier.nowait() for barrier in (first, *others)]
    members.move()
    assert all(call.done() for call in again)


def test_an_iterator_of_views_that_is_not_read_keeps_the_newest(group: orca.Group) -> None:
    views = group.views()
    listeners = group._session.on_view
    found: list[orca.View] = []
    reader = threading.Thread(target=lambda: found.append(next(views)))
    reader.start()
    deadline = time.monotonic() + 60
    while not listeners:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    listeners[0](replaced(group.view, number=1))
    reader.join(60)
    for number in range(2, 3000):
        listeners[0](replaced(group.view, number=number))
    found += [next(views) for _ in range(1024)]
    assert [view.number for view in found] == [1, *range(1976, 3000)]


def test_messages_that_are_not_ordered_are_bounded_without_pack_too() -> None:
    group = create_group(stack="XFER:TOTAL:MBRSHIP:COM:unix")
    inbox = group._inbox
    try:
        inbox.under_way = 8 * MIB - 10
        assert inbox.wait_for_room(10) is None
        room = inbox.wait_for_room(11)
        assert room is not None
        inbox.under_way, inbox.sent = 1, inbox.returned + WAITING_MAX
        assert inbox.wait_for_room(1) is room
        inbox.under_way, inbox.sent = 0, inbox.returned
        assert inbox.wait_for_room(16 * MIB) is None, "one that is larger goes alone"
        send_to_group(group, b"message")
        assert inbox.under_way == 0
    finally:
        leave_group(group)


# Lock queues.


async def test_senders_wait_when_a_lock_queue_is_full() -> None:
    let_go = threading.Event()
    standing["wait"] = let_go.wait
    async with orca.join() as group:
        gate = await group.share.aio(Gate, "gate")
        stands = gate.stand.nowait()
        calls = []
        try:
            with contextlib.suppress(orca.WindowFull):
                for _ in range(64):
                    calls.append(gate.put.nowait(bytes(MIB)))
            # The queue, what is numbered beyond it, and the sender's window: 8, 16 and 8 MiB.
            assert 8 <= len(calls) <= 33
        finally:
            let_go.set()
        await group.drain()
        await gate.put.aio(b"last")
        assert stands.done()
        assert await gate.lengths.aio() == [*([MIB] * len(calls)), 4]


# An object without a class here.


def test_calls_of_an_undeclared_class_are_kept_up_to_a_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Over a sequencer: a packet as large as a lane waits for others to apply its parts, and time stands still here."""
    members = Members()
    ignorant = members.nodes[2]
    ignorant.runtime.table.lookup = lambda name: None  # as if it had not imported the module
    made = Share(members.nodes[0].runtime).nowait(Gate, "gate")
    members.move()
    gate = made.result()
    replica = ignorant.runtime.replicas[1]
    assert replica is not None
    for count in range(1, 8):
        gate.put.nowait(bytes(MIB))
        members.move()
        assert len(queued_at(replica)) == count
    gate.put.nowait(bytes(2 * MIB))
    members.move()
    assert queued_at(replica) == []
    assert "calls of 'gate' came before" in caplog.text
    gate.put.nowait(b"more")
    members.move()
    assert queued_at(replica) == []
    wanted = Share(ignorant.runtime).nowait(Gate, "gate")
    members.move()
    assert isinstance(wanted.exception(), orca.NotSerializable)
    assert len(gate.lengths()) == 9
