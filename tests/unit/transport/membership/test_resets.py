"""Resets of a group that is blocked: what is refused, and what the group goes on with."""

from __future__ import annotations

import pytest

from orcalike.transport.application_state import State
from orcalike.transport.membership import events
from orcalike.transport.view import LINEAGE_BITS, LINEAGES_MAX
from tests.lib.agreement import A, B, C, D, Group


def test_a_reset_begins_a_new_lineage() -> None:
    group = Group(A, B, C)
    assert group["a"].reset(1) == "the group is not blocked"
    group.crash("b", "c")
    group.suspect("a", "b", "c")
    group.settle()
    assert group["a"].reset(2) == "1 member present, 2 asked for"
    assert group["a"].reset(1) is None
    (view,) = group["a"].views
    assert view.members == (A,)
    assert view.lineage > 1 << 24


@pytest.mark.parametrize(
    ("resets", "refused"), [(LINEAGES_MAX - 2, False), (LINEAGES_MAX - 1, True)]
)
def test_a_reset_past_the_last_lineage_is_refused(resets: int, refused: bool) -> None:
    """The member that leads goes on as it is."""
    group = Group(A, B, C, lineage=resets << LINEAGE_BITS | 1)
    group.crash("b", "c")
    group.suspect("a", "b", "c")
    group.settle()
    why = group["a"].reset(1)
    assert (why is not None and "make a new group" in why) is refused
    assert bool(group["a"].views) is not refused


@pytest.mark.parametrize(("minimum", "goes_on"), [(1, True), (2, False)])
def test_a_reset_goes_on_without_a_member_that_dies_before_it_accepts(
    minimum: int, goes_on: bool
) -> None:
    """What is decided needs all that promised: so the leader begins again, without that member."""
    group = Group(A, B, C, D)
    group.crash("a", "d")
    group.suspect("bc", "a", "d")
    group.settle()
    assert group["b"].blocks
    assert group["b"].reset(minimum) is None
    group.pass_on("b")
    group.pass_on("c")
    ballot = group["b"].ballot
    assert ballot is not None
    assert ballot.value is not None
    group.crash("c")
    group["b"].died(C.incarnation, vouched=False)
    group["b"].proceed()
    group.settle()
    assert [view.members for view in group["b"].views] == ([(B,)] if goes_on else [])
    if not goes_on:
        assert group["b"].blocks[-1][1] == "reset asks for 2 members, one with the state"


def test_a_reset_waits_for_a_member_that_was_slow_and_has_promised() -> None:
    """It will not be in the view, but it answers: so its acceptance comes, and no other ballot."""
    group = Group(A, B, C, D)
    group.crash("a", "d")
    group.suspect("bc", "a", "d")
    group.settle()
    assert group["b"].blocks
    group["b"].step(events.Expelled((C.incarnation,)))
    assert group["b"].reset(2) is None
    ballot = group["b"].ballot
    assert ballot is not None
    group.settle()
    (view,) = group["b"].views
    assert (view.members, view.ballot) == ((B,), ballot.number)


def test_a_reset_needs_a_member_with_the_state() -> None:
    group = Group(A, B, C)
    group["a"].state = State.NONE
    group.crash("b", "c")
    group.suspect("a", "b", "c")
    assert group["a"].reset(1) == "no member that is there has the whole state"
    assert not group["a"].views


def test_only_the_leader_resets() -> None:
    group = Group(A, B, C)
    group.crash("c")
    group.suspect("ab", "c")
    assert group["b"].reset(1) == "the group is not blocked"
