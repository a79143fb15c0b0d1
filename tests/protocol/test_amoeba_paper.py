"""Sentences of the Amoeba group communication paper (Kaashoek and Tanenbaum, 1996), as tests."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.protocol.checkers import Installed
from tests.protocol.hands import STACK, Hands

NAMES = "abc"


def group(names: str = "a b c", stack: str = STACK) -> Hands:
    hands = Hands(stack)
    hands.form(names)
    hands.lines()
    return hands


@pytest.mark.parametrize("arrivals", list(permutations(["ba", "ca", "ab", "ac"])), ids=" ".join)
def test_concurrent_messages_come_in_one_order(arrivals: tuple[str, ...]) -> None:
    """2.2: "It never happens that member 1 sees A and then B, and member 2 sees B and then A."

    A19. Whatever arrives first where.
    """
    hands = group()
    hands.cast("b", b"A")
    hands.cast("c", b"B")
    for arrival in arrivals:
        hands.deliver(arrival[0], arrival[1])
    hands.stabilize()
    orders = [hands[name].bodies for name in NAMES]
    assert orders[0] in ([b"A", b"B"], [b"B", b"A"])
    assert orders == [orders[0]] * 3


def test_one_senders_messages_come_in_its_order() -> None:
    """2.2: "The group primitives guarantee a total ordering (with FIFO) per group." """
    hands = group()
    sent = [str(i).encode() for i in range(20)]
    for body in sent:
        hands.cast("b", body)
        hands.cast("c", b"between")
    hands.stabilize()
    for name in NAMES:
        assert [body for body in hands[name].bodies if body != b"between"] == sent


@pytest.mark.parametrize("cast_is_numbered", [True, False])
def test_a_join_has_one_place_among_the_messages(cast_is_numbered: bool) -> None:
    """2: "either all members first receive the join and then the broadcast or all members first
    receive the broadcast and then the join." A02, A09.
    """
    hands = group("a b")
    hands.add("c")
    hands.join("c", "a")
    hands.cast("b", b"x")
    if cast_is_numbered:
        hands.deliver("b", "a")
    else:
        hands.deliver("a", "c")
        hands.deliver("c", "a", 2)
    hands.stabilize()
    histories = [hands[name].history for name in NAMES]
    assert histories == [histories[0]] * 3
    assert isinstance(histories[0][-1], Installed) == cast_is_numbered


def test_a_leave_has_one_place_among_the_messages() -> None:
    """2: "a member leaving the group [...] totally-ordered." A09."""
    hands = group()
    hands.cast("b", b"x")
    hands.leave("c")
    hands.cast("a", b"y")
    hands.stabilize()
    assert hands["a"].history == hands["b"].history
    assert hands["c"].exited == "left"
    assert hands["c"].history == hands["a"].history[: len(hands["c"].history)]


def test_the_sequencer_numbers_and_broadcasts() -> None:
    """3.1: "a point-to-point message is sent to the sequencer and the sequencer broadcasts the
    message" (PB, A26): one request, and one copy to each of the others.
    """
    hands = group("a b c d")
    hands.cast("b", b"x")
    assert [len(hands.frames(name)) for name in "abcd"] == [0, 1, 0, 0]
    hands.deliver("b", "a")
    assert [len(hands.frames(name)) for name in "abcd"] == [3, 0, 0, 0]


def test_members_elect_another_sequencer() -> None:
    """2.2: "the remaining group members elect a new one": the oldest, if all can tell."""
    hands = group()
    hands.leave("a")
    hands.stabilize()
    hands.cast("c", b"x")
    assert [len(hands.frames(name)) for name in "bc"] == [0, 1]
    hands.stabilize()
    assert hands["b"].bodies == hands["c"].bodies == [b"x"]
    views = [hands[name].installed for name in "bc"]
    assert views[0] is not None
    assert views[0].sequencer.address == "sim:b"
    assert views[0] == views[1]


def test_acknowledgements_ride_on_messages() -> None:
    """2.2: "acknowledgements are piggybacked on regular data messages" (A22).

    A member that casts tells what it expects by that; one that only listens says so each quarter
    of a window.
    """
    hands = group(stack="XFER:TOTAL(packets=40):MBRSHIP:COM:sim")
    hands.stabilize()
    hands.lines()
    for _ in range(30):
        for name in "bc":
            hands.cast(name, b"x")
            hands.stabilize()
    assert not [line for line in hands.lines() if "EXPECT" in line]
    for _ in range(30):
        hands.cast("b", b"x")
        hands.stabilize()
    assert [line.split(" EXPECT")[0] for line in hands.lines() if "EXPECT" in line] == [
        "c->a v3"
    ] * 3


def test_the_header_does_not_grow_with_the_group() -> None:
    """4 and 6 (A40): the cost of a header is the same for any size of the group."""
    sizes = set()
    for names in ("a b", "a b c", "a b c d e f g h i"):
        hands = group(names)
        hands.cast("b", b"x")
        sizes.add(len(hands.frames("b")[0]))
    assert len(sizes) == 1


def test_a_group_is_closed() -> None:
    """2: "To send to or to receive from a particular group, a process has to join the group." """
    hands = group("a b")
    hands.add("c")
    hands.cast("c", b"from outside")
    hands.cast("a", b"inside")
    hands.stabilize()
    assert hands["a"].bodies == hands["b"].bodies == [b"inside"]
    assert not hands["c"].history


def test_the_order_is_of_one_group() -> None:
    """2.2 (A66): "The sequencer totally orders messages for a single group": others stay out."""
    hands = group("a b")
    hands.add("z", group="other")
    hands.join("z", "a")
    hands.stabilize()
    assert any("another group than 'other'" in error for error in hands["z"].errors)
    hands.cast("b", b"x")
    hands.stabilize()
    assert hands["a"].bodies == hands["b"].bodies == [b"x"]
    assert not hands["z"].history
