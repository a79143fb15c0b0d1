"""States are compared at places of the order, and the odd replica serves no more (I18, I24).

A member is made odd by hand: its replica is changed outside of the order. Time stands still in these
groups, so the tests say when a member reports what it has seen.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import orcalike as orca
from orcalike.runtime import digests
from orcalike.runtime.assemble import make_runtime
from orcalike.runtime.codes import Code
from orcalike.runtime.digests import RECORD
from orcalike.runtime.divergence import diverged
from orcalike.runtime.state_digest import Look
from orcalike.runtime.task import go_on, queued_at
from orcalike.session.group_calls import Drop, Share, Whole
from tests.lib.shared_classes import Counter, Journal
from tests.protocol import sim_runtime
from tests.protocol.digest_stage import (
    Heap,
    Many,
    expire,
    here,
    keep_threads,
    make,
    report,
    run_threads,
    sound,
)
from tests.protocol.sim_runtime import Participant
from tests.protocol.test_runtime_sim import Stage, replica_of

pytestmark = pytest.mark.usefixtures("order")


def test_the_odd_member_serves_no_more_and_all_name_the_divergence(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, odd = stage.participants
    counter = stage.share(first, Counter, "counter", 3)
    counter.add.nowait(1)
    stage.settle()
    report(stage)
    assert sound(stage)
    assert here(odd, "counter").value == 4
    here(odd, "counter").value = 7
    with caplog.at_level(logging.ERROR):
        counter.add.nowait(1)
        stage.settle()
        report(stage)
    assert len(odd.faults) == 1
    text = odd.faults[0]
    names = {
        number: str(participant.runtime.me) for number, participant in enumerate(stage.participants)
    }
    for said in ("'counter'", "Counter", "in which ran: add", "between seqno ", " and seqno "):
        assert said in text
    assert f"{names[0]} and {names[1]}; {names[2]}. " in text
    assert "Something that an operation returned, or an attribute, was changed outside of" in text
    assert "ORCALIKE_CHECK=strict finds attributes that are set, shadow such operations" in text
    assert not first.faults
    assert not second.faults
    goes_on = [r.getMessage() for r in caplog.records if "this member goes on" in r.getMessage()]
    assert len(goes_on) == 2
    assert all(f"{names[2]} will serve no more" in line for line in goes_on)
    with pytest.raises(orca.ReplicaDivergence, match="'counter'"):
        here(odd, "counter").get()
    with pytest.raises(orca.ReplicaDivergence):
        here(odd, "counter").add.nowait(1)
    again = counter.add.nowait(1)
    stage.settle()
    report(stage)
    assert again.result() == 6
    assert len(odd.faults) == 1
    assert not first.faults


def test_a_tie_keeps_the_side_of_the_oldest_member(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = make(monkeypatch, "some", 2)
    first, second = stage.participants
    stage.share(first, Counter, "counter", 3)
    here(first, "counter").value = 9
    report(stage)
    assert not first.faults
    assert len(second.faults) == 1
    assert "__init__" in second.faults[0]


def test_what_was_written_last_is_looked_at_and_then_all_is_quiet(stage: Stage) -> None:
    first, _, odd = stage.participants
    counter = stage.share(first, Counter, "counter", 3)
    report(stage)
    here(odd, "counter").value = 7
    counter.add.nowait(0)
    stage.settle()
    assert sound(stage)
    report(stage)
    assert odd.faults
    before = first.runtime.place_of()
    report(stage)
    assert first.runtime.place_of() == before  # nothing is sent any more


OBJECTS = 700

NEVER = (1 << 63) - 1


def test_each_write_is_looked_at_within_so_many_looks_as_there_are_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if many wait, and others are written all the time; then all is quiet."""
    stage = make(monkeypatch, "some", 3)
    first, _, odd = stage.participants
    made = [Share(first.runtime).nowait(Heap, f"heap {number}") for number in range(OBJECTS)]
    stage.settle()
    heaps = [invocation.result() for invocation in made]
    report(stage, OBJECTS // 4)
    assert not first.runtime.dirty
    before = first.runtime.place_of()
    report(stage)
    assert first.runtime.place_of() == before  # nothing is sent any more
    for heap in heaps:
        heap.touch.nowait()
    stage.settle()
    here(odd, f"heap {OBJECTS // 2}").other = 17
    for _ in range(OBJECTS // 4):
        for heap in heaps[:40]:
            heap.touch.nowait()
        report(stage, 1)
        assert len(first.runtime.dirty) <= OBJECTS
        if odd.faults:
            break
    assert f"'heap {OBJECTS // 2}'" in odd.faults[0]


def test_an_object_that_ends_later_at_one_member_changes_no_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its end has a place in the order, and waits there for an operation in a thread of its own."""
    stage = make(monkeypatch, "some", 4, 3)
    first, second, _, joiner = stage.participants
    threads: list[tuple[Participant, Callable[[], None]]] = []
    keep_threads(threads, second)
    heaps = [stage.share(first, Heap, f"heap {number}") for number in range(20)]
    heaps[3].touch_slowly.nowait()
    stage.settle()
    Drop(first.runtime).nowait(heaps[3])
    here(second, "heap 3").touch.nowait()  # it does not know yet
    for heap in heaps[10:]:
        heap.touch.nowait()
    stage.settle()
    assert queued_at(replica_of(second, "heap 3"))
    waiting = [[r.name for r in participant.runtime.dirty] for participant in (first, second)]
    assert waiting[0] == waiting[1]
    assert "heap 3" not in waiting[0]
    stage.admit(3, through=1)
    here(second, "heap 3").touch.nowait()
    stage.settle()
    waiting = [
        [r.name for r in participant.runtime.dirty] for participant in (first, second, joiner)
    ]
    assert waiting[0] == waiting[1] == waiting[2]
    assert "heap 12" in waiting[0]
    here(joiner, "heap 12").other = 17
    run_threads(threads)
    stage.settle()
    report(stage, 12)
    assert joiner.faults
    assert not second.faults


def test_a_look_that_comes_late_is_reported_although_all_is_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waits behind an operation in a thread of its own, longer than until the next report."""
    stage = make(monkeypatch, "some", 3)
    first, _, odd = stage.participants
    heap = stage.share(first, Heap, "heap")
    report(stage)
    threads: list[tuple[Participant, Callable[[], None]]] = []
    for participant in stage.participants:
        keep_threads(threads, participant)
    heap.touch_slowly.nowait()
    stage.settle()
    report(stage, 6)
    here(odd, "heap").other = 17
    assert all(participant.runtime.deadline == NEVER for participant in stage.participants)
    run_threads(threads)
    for participant in stage.participants:
        if participant.runtime.deadline != NEVER:
            participant.node.call(partial(expire, participant))
    stage.settle()
    assert odd.faults


def test_a_look_or_a_fence_packs_no_object_early_for_a_joiner(stage: Stage) -> None:
    """They change nothing: only a write is what a joiner's snapshot must come before."""
    first, *_ = stage.participants
    heap = stage.share(first, Heap, "heap")
    heap.set.nowait([0] * 1000)
    stage.settle()
    snapshot = first.runtime.donor.give()
    report(stage)
    replica = replica_of(first, "heap")
    replica.hold(0)  # as a read does that is under way
    fence = Whole(first.runtime, Code.FENCE).nowait()
    stage.settle()
    assert not fence.done()
    go_on(replica)
    stage.settle()
    assert fence.done()
    assert snapshot.kept == 0
    assert replica.snapshots
    heap.touch.nowait()
    stage.settle()
    assert snapshot.kept > 0
    snapshot.close()


def test_what_ran_is_named_whatever_the_number_of_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bits of what is no operation are no operation's."""
    stage = make(monkeypatch, "some", 3)
    first, _, odd = stage.participants
    many = stage.share(first, Many, "many")
    report(stage)
    here(odd, "many").value = 17
    for name in ("add_03", "add_58", "add_61", "add_69"):
        getattr(many, name).nowait()
    stage.settle()
    report(stage)
    (ran,) = re.findall("in which ran: ([^;]*);", odd.faults[0])
    assert ran.split(", ")[:2] == ["add_03", "add_58"]
    assert set(ran.split(", ")[2].split(" or ")) == {f"add_{n}" for n in range(59, 70)}
    assert "__init__" not in ran
    assert "joiner" not in ran
    assert "atomic" not in ran


def test_an_object_that_is_not_written_is_looked_at_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = make(monkeypatch, "some", 3)
    first, _, odd = stage.participants
    counter = stage.share(first, Counter, "counter", 3)
    stage.share(first, Journal, "journal")
    report(stage)
    here(odd, "journal").events.append("outside")
    for _ in range(30):
        counter.add.nowait(1)
        stage.settle()
    report(stage)
    assert len(odd.faults) == 1
    assert "'journal'" in odd.faults[0]


def test_a_joiner_is_compared_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = make(monkeypatch, "some", 4, 3)
    first, _, _, joiner = stage.participants
    stage.share(first, Counter, "counter", 3)
    report(stage)
    stage.admit(3)
    here(joiner, "counter").value = 1
    report(stage)
    assert "what made the state that a joiner got" in joiner.faults[0]
    assert not first.faults


def test_reports_do_not_count_as_delivered(stage: Stage) -> None:
    first = stage.participants[0]
    counter = stage.share(first, Counter, "counter", 3)
    counter.add.nowait(1)
    stage.settle()
    before = first.runtime.dispatched, first.runtime.chain
    report(stage)
    assert (first.runtime.dispatched, first.runtime.chain) == before


@pytest.mark.parametrize(
    "content",
    [
        (),
        (1,),
        (3, 1, 1, b"x"),
        (3, 2, 1, bytes(1025 * RECORD.size)),
        ("a", "b", "c", "d"),
        (3, 1, 1, RECORD.pack(1 << 40, 0, 9, b"x" * 8)),
    ],
)
def test_reports_that_no_member_sends_change_nothing(
    stage: Stage, content: tuple[object, ...]
) -> None:
    first, second, _ = stage.participants
    counter = stage.share(first, Counter, "counter", 3)
    second.runtime.sender.post(Code.DIGESTS, content, "a report")
    stage.settle()
    assert counter.get() == 3
    counter.add.nowait(1)
    stage.settle()
    report(stage)
    assert sound(stage)


def mixed(monkeypatch: pytest.MonkeyPatch, *modes: str) -> Stage:
    """A group in which each member compares in a way of its own."""
    words = iter(modes)

    def make_one(*args: Any, **options: Any) -> Any:
        return make_runtime(*args, **options, digests=next(words))

    monkeypatch.setattr(sim_runtime, "make_runtime", make_one)
    stage = Stage(len(modes))
    for number in range(1, len(modes)):
        stage.admit(number)
    return stage


@pytest.mark.parametrize(
    "modes",
    [
        ("some", "all", "some"),
        ("all", "some", "all"),
        ("some", "none", "some"),
        ("none", "some", "some"),
        ("all", "none", "all"),
    ],
)
def test_members_that_compare_otherwise_are_left_out(
    monkeypatch: pytest.MonkeyPatch, modes: tuple[str, ...]
) -> None:
    stage = mixed(monkeypatch, *modes)
    first = stage.participants[0]
    counter = stage.share(first, Counter, "counter", 3)
    counter.add.nowait(1)
    stage.settle()
    report(stage)
    counter.add.nowait(1)
    stage.settle()
    report(stage)
    assert sound(stage)
    alike = [
        participant
        for participant, mode in zip(stage.participants, modes, strict=True)
        if modes.count(mode) > 1
    ]
    odd = alike[-1]
    here(odd, "counter").value = 17
    counter.add.nowait(1)
    stage.settle()
    report(stage, 6)
    assert [bool(participant.faults) for participant in stage.participants] == [
        participant is odd for participant in stage.participants
    ]


def test_a_member_that_has_failed_is_not_waited_for_and_a_joiner_does_not_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = make(monkeypatch, "some", 5, 4)
    first, second, third, failed, joiner = stage.participants
    counter = stage.share(first, Counter, "counter", 3)
    report(stage)
    failed.node.call(lambda now: diverged(failed.runtime, "a test", None, MemoryError()))
    stage.settle()
    assert failed.faults
    here(third, "counter").value = 17
    counter.add.nowait(1)
    stage.settle()
    report(stage, 6)
    assert third.faults
    stage.admit(4)
    here(joiner, "counter").value = 18
    counter.add.nowait(1)
    stage.settle()
    report(stage, 6)
    assert joiner.faults
    assert not first.faults
    assert not second.faults


def test_where_an_object_stands_among_those_that_were_written_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = make(monkeypatch, "some", 3)
    first, _, third = stage.participants
    heaps = [stage.share(first, Heap, f"heap {number}") for number in range(3)]
    for heap in heaps:
        heap.set.nowait(list(range(3000)))
    stage.settle()
    report(stage)
    for _ in range(5):
        for heap in heaps:
            heap.touch.nowait()
        replica = replica_of(third, "heap 0")
        stage.settle()
        replica.ran = 0
        del third.runtime.dirty[replica]
        report(stage)
    assert sound(stage)


def test_a_look_that_fails_here_alone_stops_no_member(stage: Stage) -> None:
    first, _, third = stage.participants
    heap = stage.share(first, Heap, "heap")
    report(stage)

    def fail(*args: object) -> bytes:
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch:

        def looking(codec: Any, most: int | None, turn: int) -> Any:
            look = Look(codec, most, turn)
            if codec is third.runtime.sender.codec:
                for name in ("digest", "digest_of_values"):
                    patch.setattr(look, name, fail)
            return look

        patch.setattr(digests, "Look", looking)
        heap.touch.nowait()
        stage.settle()
        report(stage)
    assert sound(stage)
    heap.touch.nowait()
    stage.settle()
    report(stage)
    assert sound(stage)
