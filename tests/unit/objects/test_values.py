"""Counters, extremes and values, from several members at once."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from orcalike.objects import Counter, Deque, Dict, List, Maximum, Minimum, Value
from tests.unit.objects.members import DEADLINE, Lab, run_in_threads


def test_all_members_count(lab: Lab) -> None:
    counters: list[Counter] = lab.at_each(Counter, 5)

    def count(counter: Counter) -> None:
        for _ in range(20):
            counter.add()
        counter.subtract(2)

    run_in_threads([lambda counter=each: count(counter) for each in counters])  # type: ignore[misc]
    for group in lab.groups:
        group.fence(timeout=DEADLINE)
    assert [counter.wait_for(59) for counter in counters] == [59, 59, 59]
    assert counters[0].reset() == 59
    counters[0] += 3
    counters[0] -= 1
    assert (int(counters[0]), counters[0].value, range(9)[counters[0]]) == (2, 2, 2)
    lab.compare()


def test_the_best_of_all_offers(lab: Lab) -> None:
    shortest: list[Minimum[int]] = lab.at_each(Minimum, 1000)
    longest: list[Maximum[tuple[int, str]]] = lab.at_each(Maximum, (0, ""))
    run_in_threads(
        [
            lambda low=low, high=high, rank=rank: [  # type: ignore[misc]
                (low.offer(100 - number * 3 - rank), high.offer((number * 3 + rank, "tour")))
                for number in range(20)
            ]
            for rank, (low, high) in enumerate(zip(shortest, longest, strict=True))
        ]
    )
    for group in lab.groups:
        group.fence()
    assert {low.value for low in shortest} == {41}
    assert {high.get() for high in longest} == {(59, "tour")}
    assert not shortest[1].offer(41)
    assert shortest[1].offer(40)
    lab.compare()


def test_an_offer_that_is_no_better_sends_nothing(lab: Lab) -> None:
    low: Minimum[int] = lab.share(Minimum, 10)
    before = lab.groups[0].info().next_seqno
    assert not low.offer(11)
    assert lab.groups[0].info().next_seqno == before


def test_a_value(lab: Lab) -> None:
    here, there, _ = values = lab.at_each(Value, None)
    here.value = [1]
    assert there.wait_for([1]) == [1]
    assert there.swap("now") == [1]
    assert not here.compare_and_set([1], 2)
    assert here.compare_and_set("now", 2)
    assert [value.wait_for(2) for value in values] == [2, 2, 2]
    lab.compare()


def test_views_are_as_those_of_a_dict(lab: Lab) -> None:
    plain = {"b": 1, "a": 2}
    shared = lab.share(Dict, plain)
    for kind in ("keys", "values", "items"):
        there, here = getattr(shared, kind)(), getattr(plain, kind)()
        assert (repr(there), list(there), list(reversed(there))) == (
            repr(here),
            list(here),
            list(reversed(here)),
        )
    lab.compare()


def test_what_stands_for_an_integer_is_an_index(lab: Lab) -> None:
    one = lab.share(Counter, 1)
    for shared, plain in (
        (lab.share(List, [1, 2, 3]), [1, 2, 3]),
        (lab.share(Deque, [1, 2, 3]), deque([1, 2, 3])),
    ):
        each: Any
        for each, index in ((shared, one), (plain, 1)):
            each.insert(index, 4)
            each *= index
            if isinstance(plain, deque):
                each.rotate(index)
        assert list(shared) == list(plain)
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            shared.insert("first", 4)
    lab.compare()


async def test_in_coroutines() -> None:
    import orcalike as orca

    async with orca.join() as group:
        low = await group.share.aio(Minimum[int], "low", 9)
        assert await low.offer.aio(3)
        assert not await low.offer.aio(3)
