"""Equal states have equal digests in simulated groups, other states others, also in slices (I18, I24)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from typing import Any

import pytest

from tests.protocol.digest_stage import (
    Heap,
    Snapping,
    here,
    make,
    report,
    sound,
)
from tests.protocol.sim_programs import Late
from tests.protocol.test_runtime_sim import Stage

pytestmark = pytest.mark.usefixtures("order")


def alike_and_not_the_same() -> Iterator[tuple[Any, Any]]:
    """Values that are equal, made in other ways."""
    names = [f"name {number}" for number in range(40)]
    backward = names[::-1]
    yield set(names), set(backward)
    yield dict.fromkeys(names), dict.fromkeys(reversed(names))
    nan = float("nan")
    yield [nan, nan, 0.5], [float("nan"), float("nan"), 0.5]
    one = [1, 2]
    yield [one, one], [[1, 2], [1, 2]]
    yield {(1, 2): {3: {4}}, "a": frozenset({5, 13})}, {"a": frozenset({13, 5}), (1, 2): {3: {4}}}
    yield defaultdict(list, {"a": [1]}), defaultdict(list, {"a": [1]})


def deep(levels: int, value: Any, kind: Any = None) -> Any:
    """A value so many levels down."""
    for _ in range(levels):
        value = [value] if kind is None else kind({"a": value})
    return value


def other() -> Iterator[tuple[Any, Any]]:
    """Values that differ."""
    yield 1, True
    yield 1, 1.0
    yield 0.0, -0.0
    yield [1, 2], (1, 2)
    yield "a", b"a"
    yield {1: 2}, {1: 3}
    yield {1, 2}, frozenset({1, 2})
    yield deque([1]), [1]
    yield OrderedDict([(1, 1), (2, 2)]), OrderedDict([(2, 2), (1, 1)])
    yield deep(29, 1), deep(29, 2)
    yield deep(9, 1, OrderedDict), deep(9, 2, OrderedDict)
    yield list(range(100_000)), list(range(99_999))
    yield bytes(10_000_000), bytes(10_000_001)
    yield dict.fromkeys(range(100_000)), dict.fromkeys(range(100_001))


@pytest.mark.parametrize("number", range(len([*alike_and_not_the_same()])))
def test_equal_states_have_equal_digests(stage: Stage, number: int) -> None:
    one, same = [*alike_and_not_the_same()][number]
    first, _, third = stage.participants
    heap = stage.share(first, Heap, "heap")
    heap.set.nowait(one)
    stage.settle()
    here(third, "heap").value = same
    heap.touch.nowait()
    stage.settle()
    report(stage)
    assert sound(stage)


@pytest.mark.parametrize("number", range(len([*other()])))
def test_other_states_have_other_digests(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    one, another = [*other()][number]
    stage = make(monkeypatch, "some", 3)
    first, _, third = stage.participants
    heap = stage.share(first, Heap, "heap")
    for participant in stage.participants:
        here(participant, "heap").value = another if participant is third else one
    heap.touch.nowait()
    stage.settle()
    report(stage)
    assert len(third.faults) == 1


def test_a_large_list_is_looked_at_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = make(monkeypatch, "some", 3)
    first, _, third = stage.participants
    heap = stage.share(first, Heap, "heap")
    for participant in stage.participants:
        here(participant, "heap").value = list(range(40_000))
    here(third, "heap").value[12_345] = -1
    for _ in range(200):
        heap.touch.nowait()
        stage.settle()
        report(stage, 2)
        if third.faults:
            break
    assert "in parts: it may be older" in third.faults[0]
    assert not first.faults


def test_operations_in_threads_of_their_own_and_a_late_class(stage: Stage) -> None:
    """The place of a look is the object's own: what runs elsewhere meanwhile does not matter."""
    first, second, _ = stage.participants
    heap = stage.share(first, Heap, "heap")
    late = stage.share(first, Late, "late", 5)
    for number in range(12):
        (heap.touch_slowly if number % 3 == 0 else heap.touch).nowait()
        here(second, "heap").touch.nowait()
        late.add.nowait(1)
        if number % 4 == 0:
            report(stage, 1)
    stage.settle()
    report(stage)
    assert sound(stage)
    assert here(second, "heap").other == 24


def test_a_report_that_comes_between_two_packets_is_of_other_places(stage: Stage) -> None:
    """The look before a packet is at its place, and not once more at the last one's."""
    first, _, third = stage.participants
    heap = stage.share(first, Heap, "heap")
    for _ in range(3):
        heap.touch.nowait()
    stage.settle()
    heap.touch.nowait()
    assert third.runtime.digests is not None
    third.runtime.digests.report()  # this member has not got that packet yet
    stage.settle()
    report(stage)
    assert sound(stage)


def test_a_class_with_a_snapshot_is_looked_at_where_each_write_is(stage: Stage) -> None:
    first, _, odd = stage.participants
    snapping = stage.share(first, Snapping, "snapping")
    snapping.add.nowait()
    stage.settle()
    report(stage)
    assert sound(stage)
    here(odd, "snapping").value = 7
    snapping.add.nowait()
    stage.settle()
    report(stage)
    assert bool(odd.faults) == first.runtime.look_always
