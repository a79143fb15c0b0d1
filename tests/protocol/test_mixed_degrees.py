"""Degrees that differ in one group: each packet has its own; the smallest decides which may go on.

H1 and H2.
"""

from __future__ import annotations

import pytest

from orcalike.transport.membership.attempt import Attempt, Report
from orcalike.transport.membership.quorum import State
from orcalike.transport.view import Member, View
from tests.protocol.hands import Hands

MAJORITY, ALL = 254, 255


def group(names: str = "a b c d e") -> Hands:
    hands = Hands()
    hands.form(names)
    return hands


def holds(hands: Hands, name: str) -> None:
    """One frame from the sequencer arrives, and the word that it is held."""
    hands.deliver("a", name)
    hands.deliver(name, "a")


@pytest.mark.parametrize(
    ("degree", "others"), [(0, 0), (1, 1), (2, 2), (3, 3), (MAJORITY, 2), (ALL, 4)]
)
def test_nothing_is_read_before_so_many_others_hold_it(degree: int, others: int) -> None:
    """Of five members; the sequencer is one more."""
    hands = group()
    hands.cast("a", b"x", degree)
    for name in "bcde"[:others]:
        assert not hands["a"].bodies
        holds(hands, name)
    assert hands["a"].bodies == [b"x"]


@pytest.mark.parametrize("behind", [0, 1])
def test_what_comes_behind_a_tentative_packet_waits_for_it(behind: int) -> None:
    hands = group()
    hands.cast("a", b"first", 3)
    hands.cast("a", b"second", behind)
    for name in "bc":
        hands.deliver("a", name, 2)
        hands.deliver(name, "a", 2)
        assert not hands["a"].bodies
        assert not hands[name].bodies
    hands.deliver("a", "d", 2)
    hands.deliver("d", "a", 2)
    assert hands["a"].bodies == [b"first", b"second"]


def test_what_the_view_is_too_small_for_waits_and_delays_no_member() -> None:
    """It stays with its sender, and all that it casts behind that; others go on."""
    hands = group("a b c")
    hands.cast("b", b"too much", 3)
    hands.cast("b", b"behind", 0)
    hands.cast("c", b"of c", 2)
    hands.stabilize()
    for name in "abc":
        assert hands[name].bodies == [b"of c"]
    hands.add("d")
    hands.join("d", "a")
    hands.stabilize()
    for name in "abcd":
        assert hands[name].bodies == [b"of c", b"too much", b"behind"]


VIEW = View(1, 1, 0, tuple(Member(f"sim:{n}", n, n) for n in range(1, 6)))


@pytest.mark.parametrize(
    ("degrees", "granted"),
    [
        ((2, 2, 2), True),  # 5 - 2 members
        ((2, 1, 2), False),  # of 5 - 1
        ((1, 2, 2), False),
        ((2, 1, 2, 2), True),
        ((0, 0, 2), True),  # some do not know of any yet
        ((0, 1, 0), False),
        ((3, MAJORITY, 3), True),
        ((MAJORITY, MAJORITY, 1), False),
        ((3, 3), False),  # R = 3 would let two go on; no majority
    ],
)
def test_the_smallest_degree_that_is_reported_decides(
    degrees: tuple[int, ...], *, granted: bool
) -> None:
    """H1 b: a member that has seen more of the order may know of a smaller one than the others."""
    attempt = Attempt(1, VIEW)
    for place, degree in enumerate(degrees):
        attempt.reports[place] = Report(b"", state=State.WHOLE, degree=degree)
    assert attempt.may_propose(set()).granted == granted
