"""Calls that wait are woken, in the right order, by whatever may have let them run (I19, I23, I26).

Whole runtimes in the simulator, in scenes that are played by hand.
"""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime.call import waiting_calls
from orcalike.runtime.codes import Code
from orcalike.runtime.history import Recorder
from orcalike.runtime.replica import LOCKED
from orcalike.runtime.task import go_on
from orcalike.session.group_calls import Drop, Whole
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.simdriver import SimDriver
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from tests.lib import orders
from tests.lib.orders import SEQUENCED
from tests.lib.shared_classes import Counter, transfer_when
from tests.protocol.digest_stage import Heap
from tests.protocol.sim_programs import Late
from tests.protocol.sim_runtime import Participant
from tests.protocol.sim_scene import MS
from tests.protocol.test_runtime_sim import Stage, replica_of

pytestmark = pytest.mark.usefixtures("order")


def stage_of(size: int, *late: int, stack: str = "") -> Stage:
    """A group of so many, all of them in; those of `late` do not know the class `Late` yet."""
    stage = Stage(size, *late, stack=stack)
    for number in range(1, size):
        stage.admit(number)
    return stage


def here(participant: Participant, name: str) -> Any:
    """A member's own object of that name."""
    return replica_of(participant, name).object


# What wakes.


def test_guarded_reads_come_after_waiting_writes() -> None:
    """The write takes what the read waits for: so the read goes on waiting, at its own member."""
    stage = stage_of(2)
    first, second = stage.participants
    stage.share(first, Counter, "counter")
    mine = here(second, "counter")
    read = mine.above.nowait(3)
    write = mine.take.nowait(5)
    stage.settle()
    here(first, "counter").add.nowait(5)
    stage.settle()
    assert write.result() == 0
    assert not read.done()
    here(first, "counter").add.nowait(4)
    stage.settle()
    assert read.done()
    assert read.result() == 4


@orca.shared
class Steps:
    """Keeps the order in which what waited ran."""

    def __init__(self) -> None:
        self.value = 0
        self.ran: list[str] = []

    @orca.write
    def step(self, name: str, least: int, by: int) -> None:
        self.value += by
        self.ran.append(name)

    @step.when
    def _(self, name: str, least: int, by: int) -> bool:
        return self.value >= least


def test_the_oldest_is_tried_again_after_each_that_ran() -> None:
    """The younger one makes the older one's guard true: the older one runs before the youngest."""
    stage = stage_of(2)
    first, second = stage.participants
    stage.share(first, Steps, "steps")
    steps = here(second, "steps")
    for name, least, by in (("oldest", 2, 0), ("younger", 1, 1), ("youngest", 2, 0)):
        steps.step.nowait(name, least, by)
    stage.settle()
    assert steps.ran == []
    here(first, "steps").step.nowait("last", 0, 1)
    stage.settle()
    for participant in stage.participants:
        assert here(participant, "steps").ran == ["last", "younger", "oldest", "youngest"]


@pytest.mark.parametrize("locked", [False, True])
def test_a_write_that_raises_wakes_the_calls_that_wait(*, locked: bool) -> None:
    """It leaves what it did before it raised, as any method does: that may be what is waited for."""
    stage = stage_of(2)
    first, second = stage.participants
    counter = stage.share(first, Counter, "counter")
    write = counter.take.nowait(1)
    read = here(second, "counter").above.nowait(0)
    stage.settle()
    replica = replica_of(first, "counter")
    if locked:
        replica.hold(0)
    failed = counter.fail.nowait("raised")
    stage.settle()
    if locked:
        assert not failed.done()
        go_on(replica)
    assert isinstance(failed.exception(), ValueError)
    assert write.done()
    assert write.result() == 0
    assert not read.done(), "the write that waited came first"
    counter.fail.nowait("raised")
    stage.settle()
    assert read.done()
    assert read.result() == 1
    assert len(stage.held("counter")) == 1


@orca.shared
class Interrupted:
    """While its operation runs, a reader of this process comes."""

    def __init__(self) -> None:
        self.value = 0

    @orca.read
    def get(self) -> int:
        return self.value

    @orca.write
    def add(self, fail: bool) -> None:
        self.value += 1
        come(self)
        if fail:
            raise ValueError("raised")


come: Any = None


@pytest.mark.parametrize("fail", [False, True])
def test_a_call_that_came_while_an_operation_ran_is_served_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, *, fail: bool
) -> None:
    """Also when it ends by an exception. A reader in another thread queues for the mutex."""
    stage = stage_of(2)
    reads: list[orca.Invocation[int]] = []

    def read(shared: Interrupted) -> None:
        in_another_thread(lambda: reads.append(shared.get.nowait()))

    monkeypatch.setattr(f"{__name__}.come", read)
    shared = stage.share(stage.participants[1], Interrupted, "interrupted")
    call = shared.add.nowait(fail=fail)
    stage.settle()
    assert (call.exception() is not None) == fail
    assert [each.result(0) for each in reads] == [1, 1], "a read at each of two members"
    for participant in stage.participants:
        assert not replica_of(participant, "interrupted").has(LOCKED)


def in_another_thread(function: Any) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


# Members that left.


def departing(stage: Stage, call: Any) -> None:
    """The oldest calls with degree 2, and crashes when the others hold that, and it is tentative."""
    oldest = stage.participants[0]
    for participant in stage.participants:
        participant.runtime.degrees.group = 2
    call(oldest)
    stage.world.run_for(1)
    stage.world.crash(oldest.node)
    stage.anchor = stage.participants[1]
    oldest.gone = "crashed"
    for _ in range(3):
        stage.settle()


def test_a_departed_callers_guarded_call_is_withdrawn() -> None:
    """Its packet keeps its place in the order, and comes after the view without the caller."""
    stage = stage_of(4)
    second = stage.participants[1]
    stage.share(second, Counter, "counter")
    departing(stage, lambda oldest: here(oldest, "counter").take.nowait(5))
    for participant in stage.participants[1:]:
        assert not participant.runtime.waiting
        assert not waiting_calls(replica_of(participant, "counter"))
    here(second, "counter").add.nowait(7)
    stage.settle()
    assert here(second, "counter").value == 7
    assert len(stage.held("counter")) == 1


@SEQUENCED
def test_a_departed_callers_guarded_call_is_withdrawn_before_what_it_sent_next() -> None:
    """Both are in one packet; the second would have let the first run."""
    stage = stage_of(4)
    second = stage.participants[1]
    for name in ("counter", "other"):
        stage.share(second, Counter, name)

    def call(oldest: Participant) -> None:
        counter, other = here(oldest, "counter"), here(oldest, "other")
        counter.take.nowait(5)
        transfer_when.nowait(counter, other, amount=6)
        counter.add.nowait(7)

    departing(stage, call)
    for participant in stage.participants[1:]:
        assert [here(participant, name).value for name in ("counter", "other")] == [7, 0]


def test_a_departed_callers_call_whose_guard_holds_runs() -> None:
    stage = stage_of(4)
    second = stage.participants[1]
    stage.share(second, Counter, "counter", 6)
    departing(stage, lambda oldest: here(oldest, "counter").take.nowait(5))
    values = [here(participant, "counter").value for participant in stage.participants[1:]]
    assert values == [1, 1, 1]


def test_a_departed_callers_guarded_atomic_function_is_withdrawn() -> None:
    stage = stage_of(4)
    second = stage.participants[1]
    for name in ("counter", "other"):
        stage.share(second, Counter, name)
    departing(
        stage,
        lambda oldest: transfer_when.nowait(
            here(oldest, "counter"), here(oldest, "other"), amount=5
        ),
    )
    for participant in stage.participants[1:]:
        assert not participant.runtime.waiting
    here(second, "counter").add.nowait(7)
    stage.settle()
    assert [here(second, name).value for name in ("counter", "other")] == [7, 0]


@orca.shared
class Lock:
    """Is released when its owner leaves."""

    def __init__(self) -> None:
        self.owner: int | None = None

    @orca.write
    def acquire(self, rank: int) -> None:
        self.owner = rank

    @acquire.when
    def _(self, rank: int) -> bool:
        return self.owner is None

    def member_left(self, member: orca.Member) -> None:
        if self.owner == member.rank:
            self.owner = None


def test_what_a_departed_caller_took_is_released() -> None:
    """`member_left` runs once more behind its packet: a lock that it got after all is free again."""
    stage = stage_of(4)
    second = stage.participants[1]
    stage.share(second, Lock, "lock")
    departing(stage, lambda oldest: here(oldest, "lock").acquire.nowait(0))
    mine = here(second, "lock").acquire.nowait(1)
    stage.settle()
    assert mine.done()
    assert len(stage.held("lock")) == 1


def test_a_departed_callers_call_is_withdrawn_also_if_its_class_comes_late() -> None:
    """It travels in the object's queue, with the word that its caller has left."""
    stage = stage_of(5, 1, 2, 3)
    last = stage.participants[4]
    stage.share(last, Late, "late", 0)
    departing(stage, lambda oldest: here(oldest, "late").take.nowait(5))
    for participant in stage.participants[1:4]:
        participant.learn()
    stage.settle()
    for participant in stage.participants[1:]:
        assert not participant.runtime.waiting
    assert len(stage.held("late")) == 1


# What `stable=` waits for.


@pytest.mark.parametrize("k", [2, 3])
def test_stable_counts_from_where_a_guarded_call_ran(k: int) -> None:
    """Not from where it came: all had seen that long before."""
    stage = stage_of(3, stack=orders.simulated_stack("STABLE"))
    first, second, third = stage.participants
    counter = stage.share(first, Counter, "counter")
    call = counter.take.options(stable=k).nowait(5)
    stage.settle()
    for participant in (second, third):
        replica_of(participant, "counter").hold(0)
    here(second, "counter").add.nowait(5)
    stage.settle()
    assert counter.value == 0, "it ran here"
    assert not call.done(), "and nowhere else"
    go_on(replica_of(second, "counter"))
    stage.settle()
    assert call.done() == (k == 2)
    go_on(replica_of(third, "counter"))
    stage.settle()
    assert call.result() == 0


# Fences.


def test_a_fence_waits_for_what_was_ordered_before_it() -> None:
    """I23: a read after it shows all that had returned anywhere before: also of a busy object."""
    stage = stage_of(2)
    first, second = stage.participants
    counter = stage.share(first, Counter, "counter")
    replica = replica_of(second, "counter")
    replica.hold(0)
    added = counter.add.nowait(1)
    stage.settle()
    assert added.result() == 1
    fence: orca.Invocation[None] = Whole(second.runtime, Code.FENCE).nowait()
    stage.settle()
    assert not fence.done()
    go_on(replica)
    assert fence.done()
    assert here(second, "counter").get() == 1


@SEQUENCED  # in shared memory there is no news that has not come
def test_a_fence_has_its_place_behind_what_others_have_completed() -> None:
    """I23: though the news of that has not come yet, when it is called."""
    stage = stage_of(3)
    first, second, third = stage.participants
    counter = stage.share(first, Counter, "counter")
    world = stage.world
    world.cut("0", "2")
    added = counter.add.nowait(1)
    stage.world.run_for(MS)
    assert added.result() == 1
    assert here(third, "counter").get() == 0
    fence: orca.Invocation[None] = Whole(third.runtime, Code.FENCE).nowait()
    stage.world.run_for(MS)
    assert not fence.done()
    world.heal("0", "2")
    stage.settle()
    assert fence.done()
    assert here(third, "counter").get() == 1
    assert here(second, "counter").get() == 1


@SEQUENCED
def test_a_fence_has_the_groups_degree() -> None:
    """I23: a sequencer that was cut off alone finishes none, since others may have gone on."""
    stage = stage_of(3)
    first, second, _ = stage.participants
    stage.share(second, Counter, "counter")
    for participant in stage.participants:
        participant.runtime.degrees.group = 1
    for one, other in (("0", "1"), ("0", "2")):
        stage.world.cut(one, other)
        stage.world.cut(other, one)
    fence: orca.Invocation[None] = Whole(first.runtime, Code.FENCE).nowait()
    for _ in range(3):
        stage.settle()
    added = here(second, "counter").add.nowait(1)
    stage.settle()
    assert added.result() == 1
    assert here(first, "counter").value == 0
    assert not fence.done() or fence.exception() is not None


# A member that comes back.


@orca.shared
class Notes:
    """Its attributes come and go."""

    def __init__(self) -> None:
        self.kept = 1

    @orca.write
    def add_note(self) -> None:
        self.note = "a note"

    @orca.write
    def drop_note(self) -> None:
        del self.note

    @orca.write(popup=True)
    def add_note_slowly(self) -> None:
        self.note = "another"

    @orca.read
    def has_note(self) -> bool:
        return hasattr(self, "note")


def come_back(stage: Stage, participant: Participant) -> None:
    """A member that was out joins again, with the objects that its program has."""
    name = f"{participant.number}b"
    me = Member(f"sim:{name}", participant.incarnation + 1)
    stack = Stack(parse_stack(stage.scene.stack), StackConfig("group"), me, 7)
    participant.node = stage.world.add(name, stack)
    participant.runtime.rebind(stack)
    participant.runtime.sender.driver = SimDriver(participant.node)
    participant.stack, participant.gone, participant.view = stack, None, None
    participant.leaves = participant.asked = False
    stage._join(participant, stage.participants[0].node.address)
    stage.settle()
    assert participant.inside


@pytest.mark.parametrize("in_use", [False, True])
def test_a_member_that_comes_back_has_no_attribute_that_the_group_has_deleted(
    *, in_use: bool
) -> None:
    """Its program keeps the object: what the state does not have goes from it."""
    stage = stage_of(3)
    first, _, third = stage.participants
    notes = stage.share(first, Notes, "notes")
    notes.add_note.nowait()
    stage.settle()
    mine = here(third, "notes")
    assert mine.has_note()
    threads: list[Callable[[], None]] = []
    if in_use:  # a pop-up thread is in it all the while
        third.runtime.start_thread = threads.append
        mine.add_note_slowly.nowait()
        stage.settle()
        assert len(threads) == 1
    third.leave()
    stage.settle()
    notes.drop_note.nowait()
    stage.settle()
    come_back(stage, third)
    for thread in threads:
        thread()
        stage.settle()
    assert here(third, "notes") is mine
    assert not mine.has_note()
    assert mine.kept == 1
    assert len(stage.held("notes")) == 1


def test_an_object_that_ended_with_the_members_that_had_it_is_as_one_that_was_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only the witness was left: none gives a state to the member that comes back."""
    stage = Stage(3, witness=True)
    _, first, second = stage.participants
    stage.admit(1)
    stage.admit(2)
    stage.share(first, Counter, "counter")
    mine = here(second, "counter")
    waits = mine.take.nowait(1)
    for participant in (second, first):
        participant.leave()
        stage.settle()
    come_back(stage, second)
    for call in (partial(mine.add.nowait, 1), mine.get):
        with pytest.raises(orca.ObjectDropped, match="counter"):
            call()
    assert "counter" in caplog.text
    anew = stage.share(second, Counter, "counter")
    assert anew is not mine
    heap = stage.share(second, Heap, "heap")
    with pytest.raises(orca.ObjectDropped, match="counter"):
        heap.set.nowait(mine)
    drop = Drop(second.runtime).nowait(mine)
    stage.settle()
    assert isinstance(drop.exception(), orca.ObjectDropped)
    added = anew.add.nowait(2)
    stage.settle()
    assert added.result() == 2
    with pytest.raises(orca.ObjectDropped):
        mine.add.nowait(1)
    assert waits.exception() is not None
    lives = weakref.ref(mine)
    del call, mine, waits
    gc.collect()
    assert lives() is None, "it is the program's alone"


def test_what_was_under_way_as_its_member_came_back_is_not_in_the_history(tmp_path: Path) -> None:
    """It ran on the state of the time before: the file of the new incarnation would be a lie."""
    stage = stage_of(3)
    first, _, third = stage.participants
    assert third.view is not None
    history = Recorder(tmp_path, "group", third.incarnation, third.runtime.sender.codec, lambda: 0)
    history.viewed(third.view, third.view.position(third.incarnation), None)
    third.runtime.sender.history = history
    notes, counter = stage.share(first, Notes, "notes"), stage.share(first, Counter, "counter")
    stage.settle()
    mine, threads = here(third, "notes"), list[Callable[[], None]]()
    third.runtime.start_thread = threads.append
    mine.add_note_slowly.nowait()
    stage.settle()
    reads = [mine.has_note.nowait()]  # it waits for the mutex
    third.leave()
    stage.settle()
    notes.drop_note.nowait()
    stage.settle()
    come_back(stage, third)
    counter.add.nowait(1)
    stage.settle()
    assert not reads[0].done()
    for thread in threads:
        thread()
    stage.settle()
    reads.append(mine.has_note.nowait())
    history.flush()
    assert [read.result() for read in reads] == [True, False]
    (path,) = tmp_path.glob(f"*-{third.stack.me.incarnation:016x}.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    shown = [line for line in lines if "notes" in (line.get("object"), *line.get("objects", ()))]
    assert [(line["kind"], line.get("value")) for line in shown] == [("read", False)]


def test_what_raises_takes_back_the_attributes_that_it_made() -> None:
    """With `undo=True` an object is as it was, at each replica."""
    stage = stage_of(2)
    notes = stage.share(stage.participants[1], Undone, "undone")
    call = notes.add_note_and_fail.nowait()
    stage.settle()
    assert isinstance(call.exception(), ValueError)
    for participant in stage.participants:
        assert vars(here(participant, "undone")) == {"kept": [1]}


@orca.shared
class Undone:
    """Fails behind all kinds of changes."""

    def __init__(self) -> None:
        self.kept = [1]

    @orca.write(undo=True)
    def add_note_and_fail(self) -> None:
        self.note = "a note"
        self.kept.append(2)
        raise ValueError("raised")
