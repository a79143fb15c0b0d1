"""The clock of the order: what `orca.now()` shows never goes back.

It is the sequencer's wall clock, as stamped on the packet. Members' clocks differ, and a new
sequencer goes on from what was stamped before it.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from orcalike.transport.view import View
from tests.protocol.checkers import Checker
from tests.protocol.hands import Hands

HOUR = 3_600 * 10**9
EPOCH = 400_000 * HOUR


def group(*clocks: int) -> Hands:
    """Members a, b, c..., the oldest first; the wall clock of each is off by so much."""
    hands = Hands()
    for name, clock in zip("abcdef", clocks, strict=False):
        hands.add(name, epoch=EPOCH + clock)
        hands.join(name, "" if name == "a" else "a")
        hands.stabilize()
    hands.lines()
    return hands


def check(hands: Hands, names: str) -> list[int]:
    """The stamps that these members have seen: the same, and never less than before."""
    (first, *others) = (hands[name].stamps for name in names)
    assert first == sorted(first)
    for stamps in others:
        assert stamps == first[len(first) - len(stamps) :], "from its view on"
    return first


@pytest.mark.parametrize("clocks", [(0, -HOUR, -HOUR), (0, -HOUR, HOUR), (-HOUR, HOUR, 0)])
@pytest.mark.parametrize("leaves", [True, False])
def test_it_goes_on_over_a_change_of_sequencer(clocks: tuple[int, ...], *, leaves: bool) -> None:
    hands = group(*clocks)
    hands.cast("b", b"before")
    hands.stabilize()
    if leaves:
        hands.leave("a")
    else:
        hands.cut_off("a")
    hands.cast("c", b"after")
    hands.stabilize()
    assert hands["b"].bodies == [b"before", b"after"]
    last = check(hands, "bc")[-1]
    assert last == EPOCH + max(clocks[0], clocks[1]), "the later of the two sequencers' clocks"


def test_it_goes_on_with_a_sequencer_that_joined_since() -> None:
    """It knows the clock from what it got when it joined, though it saw no cast at all."""
    hands = Hands("TOTAL:MBRSHIP:COM:sim")
    hands.watch = Checker()  # no member gives state
    for name, clock in (("a", HOUR), ("b", 0)):
        hands.add(name, epoch=EPOCH + clock)
        hands.join(name, "" if name == "a" else "a")
        hands.stabilize()
        hands.cast("a", b"before")
        hands.stabilize()
    hands.leave("a")
    hands.stabilize()
    hands.add("c", epoch=EPOCH)
    hands.join("c", "b")
    hands.stabilize()
    hands.leave("b")
    hands.stabilize()
    hands.cast("c", b"after")
    assert hands["c"].stamps == [EPOCH + HOUR]


def test_it_goes_on_behind_what_was_tentative() -> None:
    """A packet that keeps its place over the fail-over keeps its moment; none behind it is older."""
    hands = group(HOUR, 0, 0, 0)
    hands.now += 1
    hands.cast("a", b"tentative", degree=2)
    hands.deliver("a", "b")
    assert not any(hands[name].bodies for name in "abcd")
    hands.cut_off("a")
    hands.cast("b", b"after", degree=0)
    hands.stabilize()
    assert hands["b"].bodies == [b"tentative", b"after"]
    assert check(hands, "bcd") == [EPOCH + HOUR + 1] * 2


def test_it_does_not_go_back_between_two_that_were_tentative() -> None:
    """The new sequencer delivers the first of them, and numbers another behind the second."""
    hands = group(HOUR, 0, 0, 0, 0)
    for degree in (2, 3):
        hands.now += 1
        hands.cast("a", b"%d" % degree, degree)
    hands.deliver("a", "b", 2)
    hands.cut_off("a")
    while len(view_of(hands, "b").members) > 4:
        for source, target in permutations("bcde", 2):
            hands.deliver(source, target)
    for name in "cd":
        hands.deliver("b", name)
        hands.deliver(name, "b")
    assert hands["b"].bodies == [b"2"]
    hands.cast("b", b"after")
    hands.stabilize()
    assert hands["b"].bodies == [b"2", b"3", b"after"]
    assert check(hands, "bcde")[1:] == [EPOCH + HOUR + 2] * 2


def test_a_joiner_sees_the_moments_of_what_was_tentative() -> None:
    hands = group(HOUR, 0, 0)
    hands.now += 1
    hands.cast("a", b"tentative", degree=2)
    hands.deliver("a", "b")
    hands.cut_off("a")
    hands.add("e", epoch=EPOCH)
    hands.join("e", "b")
    hands.stabilize()
    assert hands["e"].bodies == [b"tentative"]
    assert check(hands, "bce") == [EPOCH + HOUR + 1]


def view_of(hands: Hands, name: str) -> View:
    view = hands[name].installed
    assert view is not None
    return view
