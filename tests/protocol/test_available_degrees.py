"""Degrees that a view has too few members for: they wait, or MIN(r, members - 1) counts (Amoeba 3.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from orcalike.transport.degree import AVAILABLE
from orcalike.transport.wire.message import Message
from tests.protocol.hands import Hands


def group(names: str, witness: str = "") -> Hands:
    hands = Hands()
    hands.form(names, witness)
    return hands


def lower(hands: Hands, name: str, least: int) -> None:
    """The group of this member takes what there is of members for enough."""
    hands.call(name, lambda now: hands.endpoints[name].stack.top.degree(least | AVAILABLE))


def lose(hands: Hands, name: str) -> None:
    """A member's process ends, and all others see it."""
    gone = hands.endpoints[name].stack.me.incarnation
    hands.cut_off(name)
    for other, endpoint in hands.endpoints.items():
        if other != name:
            hands.call(other, partial(endpoint.stack.died, gone))
    hands.stabilize()


@pytest.mark.parametrize("witness", ["", "a"])
def test_what_the_view_is_too_small_for_goes_if_the_group_says_so(witness: str) -> None:
    """Of two members, one with a witness: before that it stays with its sender."""
    hands = group("a b", witness)
    hands.cast("b", b"x", 3)
    hands.stabilize()
    assert hands["b"].bodies == []
    lower(hands, "b", 3)
    hands.stabilize()
    assert hands["b"].bodies == hands["a"].bodies == [b"x"]


def test_as_many_hold_it_as_there_can_be() -> None:
    """Of three members with degree 5 all must hold it: MIN(5, 3 - 1) others."""
    hands = group("a b c")
    for name in "abc":
        lower(hands, name, 5)
    hands.stabilize()
    hands.cast("a", b"x", 5)
    hands.deliver("a", "b")
    hands.deliver("b", "a")
    assert hands["a"].bodies == []
    hands.deliver("a", "c")
    hands.deliver("c", "a")
    assert hands["a"].bodies == [b"x"]


def test_the_sequencer_need_not_know_the_rule() -> None:
    """It travels with the packet: a witness orders for groups whose options it does not know."""
    hands = group("a b c d", "a")
    lower(hands, "b", 4)
    hands.cast("b", b"x", 4)
    hands.deliver("b", "a")
    hands.deliver("a", "b")
    hands.deliver("b", "a")
    assert hands["b"].bodies == []
    hands.stabilize()
    assert hands["b"].bodies == hands["d"].bodies == [b"x"]


def test_what_is_tentative_when_members_are_lost_goes_on_with_those_that_are_left() -> None:
    hands = group("a b c")
    for name in "abc":
        lower(hands, name, 2)
    hands.stabilize()
    hands.cast("a", b"x", 2)
    hands.deliver("a", "b")  # two of the three that must hold it
    hands.deliver("b", "a")
    assert hands["a"].bodies == []
    lose(hands, "c")
    assert hands["a"].bodies == hands["b"].bodies == [b"x"]


@pytest.mark.parametrize(("degree", "told"), [(1, 1), (2, 1), (0, 0), (254, 254)])
def test_which_members_may_go_on_is_decided_by_the_degree_that_counts(
    degree: int, told: int
) -> None:
    """With two members R is at most 1, or those that hold nothing could go on (H1)."""
    hands = group("a b")
    lower(hands, "a", degree)
    mbrship: Any = hands.endpoints["a"].stack.focus("MBRSHIP")
    assert mbrship.degree_here() == told


def test_a_packet_that_has_not_left_may_be_changed() -> None:
    """One that waits for members is found; one that is on its way to the sequencer is not."""
    hands = group("a b")
    hands.cast("b", b"early", 0)
    endpoint, message = hands.endpoints["b"], Message(b"late")
    message.degree = 2
    hands.watch.cast(endpoint.stack.me.incarnation, b"void")
    hands.call("b", lambda now: endpoint.stack.cast(message, now))
    top = endpoint.stack.top
    (found,) = top.unsent()
    assert found.body == b"late"
    found.overwrite(b"void")
    lower(hands, "b", 2)
    hands.stabilize()
    assert hands["a"].bodies == [b"early", b"void"]
