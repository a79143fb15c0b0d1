"""`reset` goes on with a state that a live member has, or not at all (A05, I9)."""

from __future__ import annotations

import pytest

from orcalike.transport.application_state import State
from orcalike.transport.membership.ballot import Ballot, Report
from orcalike.transport.view import Member, View

MEMBERS = tuple(Member(f"sim:{number}", number, number) for number in range(1, 6))
VIEW = View(1, 1, 0, MEMBERS)
NONE, EMPTY, BEHIND, WHOLE = State


def ballot(*states: State, reset: int = 1) -> Ballot:
    """A ballot of a reset, and what the oldest members have reported of their state."""
    made = Ballot(1, VIEW, reset=reset)
    for place, state in enumerate(states):
        made.reports[place] = Report(b"", state=state)
    return made


@pytest.mark.parametrize(
    ("states", "dead", "granted"),
    [
        ((WHOLE,), set(), True),
        ((NONE, WHOLE), set(), True),
        ((NONE, WHOLE), {2}, False),  # it has reported, and died since
        ((NONE, WHOLE, WHOLE), {2}, True),
        ((WHOLE, NONE), {1}, False),
        ((NONE, NONE), set(), False),
        ((NONE, EMPTY), set(), True),
        ((NONE, EMPTY), {2}, False),
        ((NONE, BEHIND), set(), True),
        ((NONE, BEHIND), {2}, False),
    ],
)
def test_the_state_of_the_dead_is_dead(
    states: tuple[State, ...], dead: set[int], *, granted: bool
) -> None:
    assert ballot(*states).may_propose(dead).granted == granted


def test_a_reset_needs_as_many_as_it_asks_for() -> None:
    assert not ballot(WHOLE, NONE, reset=3).may_propose(set()).granted
    assert ballot(WHOLE, NONE, NONE, reset=3).may_propose(set()).granted


def test_a_reset_is_decided_by_all_members_that_promised() -> None:
    made = ballot(WHOLE, WHOLE)
    made.accepts = {0}
    assert not made.is_decided(set())
    made.accepts = {0, 1}
    assert made.is_decided(set())


def test_no_member_goes_on_with_a_state_that_died_in_an_ordinary_change_either() -> None:
    states = (NONE, WHOLE, NONE, NONE)
    assert ballot(*states, reset=0).may_propose(set()).granted
    assert not ballot(*states, reset=0).may_propose({2}).granted
