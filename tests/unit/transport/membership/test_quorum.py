"""The quorum rule H1: which members of a view may form the next one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

import pytest

from orcalike.transport.application_state import State
from orcalike.transport.membership.quorum import Ruling, rule_on
from orcalike.transport.view import Member, View

SIZE_MAX = 5


def view_of(size: int, witness: bool = False) -> View:
    """A view of members 1, 2, ...; the first may be a witness."""
    members = [Member(f"sim:{i}", i, witness=witness and i == 1) for i in range(1, size + 1)]
    return View(1, 7, 0, tuple(members))


def ruling(
    size: int,
    present: set[int],
    dead: set[int] | None = None,
    degree: int = 0,
    state: State = State.WHOLE,
    *,
    sure: bool = True,
) -> Ruling:
    """On members of a view of that size, all in one state."""
    states = dict.fromkeys(present, state)
    return rule_on(view_of(size), present, dead or set(), degree, states, sure=sure)


def names(found: Ruling) -> set[int]:
    """The members that the group waits for."""
    return {member.incarnation for member in found.missing}


# (a) a majority, or half with the oldest, or all that may live


@pytest.mark.parametrize(
    ("size", "present", "granted"),
    [
        (1, {1}, True),
        (2, {1}, True),
        (2, {2}, False),
        (3, {1}, False),
        (3, {2, 3}, True),
        (4, {1, 2}, True),
        (4, {1, 4}, True),
        (4, {2, 3}, False),
        (4, {2, 3, 4}, True),
        (5, {1, 2}, False),
        (5, {3, 4, 5}, True),
        (6, {1, 5, 6}, True),
        (6, {2, 5, 6}, False),
    ],
)
def test_a_majority_or_half_with_the_oldest(size: int, present: set[int], granted: bool) -> None:
    found = ruling(size, present)
    assert found.granted is granted
    if not granted:
        assert f"{len(present)} of {size} members are no majority" in found.rule
        assert names(found) == set(range(1, size + 1)) - present


@pytest.mark.parametrize(
    ("size", "present", "dead", "granted"),
    [
        (2, {2}, {1}, True),
        (3, {3}, {1, 2}, True),
        (3, {3}, {1}, False),
        (5, {4, 5}, {1, 2, 3}, True),
        (5, {4, 5}, {1, 2}, False),
        (4, {3, 4}, {1}, False),
        (4, {3, 4}, {1, 2}, True),
    ],
)
def test_certain_deaths_help_if_no_other_member_is_missing(
    size: int, present: set[int], dead: set[int], granted: bool
) -> None:
    found = ruling(size, present, dead)
    assert found.granted is granted
    assert names(found) == (set() if granted else set(range(1, size + 1)) - present - dead)


def test_the_dead_stay_in_the_count() -> None:
    """H1's example: 1 and 3 went on without 2, then 1 died. 3 is primary, so 2 alone is not."""
    assert ruling(3, {1, 3}).granted
    found = ruling(3, {2}, {1})
    assert not found.granted
    assert names(found) == {3}


def test_certain_deaths_do_not_help_a_member_that_was_out_of_contact() -> None:
    """The dead may have formed a view without it before they died."""
    assert ruling(3, {2}, {1, 3}).granted
    assert not ruling(3, {2}, {1, 3}, sure=False).granted
    assert ruling(3, {2, 3}, {1}, sure=False).granted, "a majority needs no deaths"


# (b) with a degree, all but R


@pytest.mark.parametrize(
    ("size", "present", "degree", "granted"),
    [
        (5, {1, 2, 3}, 1, False),
        (5, {1, 2, 3, 4}, 1, True),
        (5, {1, 2, 3}, 2, True),
        (5, {1, 2}, 3, False),
        (5, {1, 2, 3}, 3, True),
        (4, {1, 2}, 1, False),
        (4, {1, 2}, 2, True),
        (4, {3, 4}, 2, False),
        (2, {1}, 1, True),
    ],
)
def test_with_a_degree_all_but_so_many(
    size: int, present: set[int], degree: int, granted: bool
) -> None:
    found = ruling(size, present, degree=degree)
    assert found.granted is granted
    assert granted or found.missing


def test_certain_deaths_do_not_bring_back_what_the_dead_held() -> None:
    found = ruling(5, {1, 2, 3}, {4, 5}, degree=1)
    assert not found.granted
    assert found.rule == "with resilience 1, 4 of 5 members must be there"
    assert names(found) == {4, 5}, "no other is left that could be waited for"


@pytest.mark.parametrize("sure", [True, False])
def test_the_degree_is_named_whether_the_deaths_are_sure_or_not(*, sure: bool) -> None:
    """It asks for more members than a majority, and a busy machine does not decide which rule people see."""
    found = ruling(5, {1, 2}, {3, 4, 5}, degree=1, sure=sure)
    assert found.rule == "with resilience 1, 4 of 5 members must be there"


# (c) one with the whole state


def test_one_has_the_whole_state() -> None:
    view = view_of(3, witness=True)
    known = {1: State.NONE, 2: State.NONE}
    found = rule_on(view, {1, 2}, set(), 0, known)
    assert not found.granted
    assert found.rule == "no member that is there has the whole state"
    assert names(found) == {3}
    assert not rule_on(view, {1, 2}, set(), 0, known | {2: State.BEHIND}).granted
    assert rule_on(view, {1, 2}, set(), 0, known | {2: State.WHOLE}).granted


def test_no_state_at_all_is_whole_only_if_no_other_member_can_have_it() -> None:
    view = view_of(3, witness=True)
    empty = {1: State.EMPTY, 2: State.NONE}
    assert not rule_on(view, {1, 2}, set(), 0, empty).granted, "3 may have it, and live"
    assert not rule_on(view, {1, 2}, {3}, 0, empty).granted, "2 is there, and lives"
    assert rule_on(view, {1}, {2, 3}, 0, {1: State.EMPTY}).granted


# What the rule is for, over all there is.


def subsets(members: set[int]) -> Iterator[set[int]]:
    """All of them, the empty one too."""
    some = sorted(members)
    every = chain.from_iterable(combinations(some, count) for count in range(len(some) + 1))
    return (set(each) for each in every)


@pytest.mark.parametrize("size", range(1, SIZE_MAX + 1))
def test_two_sets_that_may_go_on_share_a_member(size: int) -> None:
    """One goes on first; then more die, but not all of it; then another set goes on.

    They share a member, so no two primary views follow the same one (I15).
    """
    members = set(range(1, size + 1))
    pairs = 0
    for dead in subsets(members):
        first = [each for each in subsets(members - dead) if ruling(size, each, dead).granted]
        for later in subsets(members - dead):
            gone = dead | later
            second = [each for each in subsets(members - gone) if ruling(size, each, gone).granted]
            for one in first:
                for other in second:
                    if one - gone:
                        pairs += 1
                        assert one & other, (one, dead, other, gone)
    assert pairs


@pytest.mark.parametrize("size", range(1, SIZE_MAX + 1))
def test_a_set_that_may_go_on_meets_all_holders(size: int) -> None:
    """R + 1 members hold a write; a set that goes on has one of them, whichever died (I8)."""
    members = set(range(1, size + 1))
    for degree in range(1, size):
        holders = [each for each in subsets(members) if len(each) == degree + 1]
        for dead in subsets(members):
            for present in subsets(members - dead):
                if ruling(size, present, dead, degree).granted:
                    assert all(present & each for each in holders), (present, dead, degree)


@pytest.mark.parametrize("size", range(1, SIZE_MAX + 1))
def test_so_many_failures_as_the_degree_says_are_survived(size: int) -> None:
    """If a majority is left, R members may die at once, and the rest goes on."""
    members = set(range(1, size + 1))
    for degree in range((size - 1) // 2 + 1):
        for dead in subsets(members):
            if len(dead) <= degree:
                assert ruling(size, members - dead, set(), degree).granted
