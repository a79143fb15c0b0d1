"""Degrees that differ in one group: each packet has its own; the smallest decides which may go on.

H1 and H2.
"""

from __future__ import annotations

import pytest

from orcalike.transport.application_state import State
from orcalike.transport.membership.ballot import Ballot, Report
from orcalike.transport.view import Member, View
from tests.lib.manual_network import ManualNetwork

MAJORITY, ALL = 254, 255


def group(names: str = "a b c d e") -> ManualNetwork:
    network = ManualNetwork()
    network.form(names)
    return network


def holds(network: ManualNetwork, name: str) -> None:
    """One frame from the sequencer arrives, and the word that it is held."""
    network.deliver("a", name)
    network.deliver(name, "a")


@pytest.mark.parametrize(
    ("degree", "others"), [(0, 0), (1, 1), (2, 2), (3, 3), (MAJORITY, 2), (ALL, 4)]
)
def test_nothing_is_read_before_so_many_others_hold_it(degree: int, others: int) -> None:
    """Of five members; the sequencer is one more."""
    network = group()
    network.cast("a", b"x", degree)
    for name in "bcde"[:others]:
        assert not network["a"].bodies
        holds(network, name)
    assert network["a"].bodies == [b"x"]


@pytest.mark.parametrize("behind", [0, 1])
def test_what_comes_behind_a_tentative_packet_waits_for_it(behind: int) -> None:
    network = group()
    network.cast("a", b"first", 3)
    network.cast("a", b"second", behind)
    for name in "bc":
        network.deliver("a", name, 2)
        network.deliver(name, "a", 2)
        assert not network["a"].bodies
        assert not network[name].bodies
    network.deliver("a", "d", 2)
    network.deliver("d", "a", 2)
    assert network["a"].bodies == [b"first", b"second"]


@pytest.mark.usefixtures("order")
def test_what_the_view_is_too_small_for_waits_and_delays_no_member() -> None:
    """It stays with its sender, and all that it casts behind that; others go on."""
    network = group("a b c")
    network.cast("b", b"too much", 3)
    network.cast("b", b"behind", 0)
    network.cast("c", b"of c", 2)
    network.stabilize()
    for name in "abc":
        assert network[name].bodies == [b"of c"]
    network.add("d")
    network.join("d", "a")
    network.stabilize()
    for name in "abcd":
        assert network[name].bodies == [b"of c", b"too much", b"behind"]


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
    ballot = Ballot(1, VIEW)
    for place, degree in enumerate(degrees):
        ballot.reports[place] = Report(b"", state=State.WHOLE, degree=degree)
    assert ballot.may_propose(set()).granted == granted
