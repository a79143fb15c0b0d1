"""The clock of the order: what `orca.now()` shows never goes back.

It is the sequencer's wall clock, as stamped on the packet. Members' clocks differ, and a new
sequencer goes on from what was stamped before it.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from orcalike.transport.view import View
from tests.lib.manual_network import ManualNetwork

HOUR = 3_600 * 10**9
EPOCH = 400_000 * HOUR


def group(*clocks: int) -> ManualNetwork:
    """Members a, b, c..., the oldest first; the wall clock of each is off by so much."""
    network = ManualNetwork()
    for name, clock in zip("abcdef", clocks, strict=False):
        network.add(name, epoch=EPOCH + clock)
        network.join(name, "" if name == "a" else "a")
        network.stabilize()
    network.lines()
    return network


def check(network: ManualNetwork, names: str) -> list[int]:
    """The stamps that these members have seen: the same, and never less than before."""
    (first, *others) = (network[name].stamps for name in names)
    assert first == sorted(first)
    for stamps in others:
        assert stamps == first[len(first) - len(stamps) :], "from its view on"
    return first


@pytest.mark.parametrize("clocks", [(0, -HOUR, -HOUR), (0, -HOUR, HOUR), (-HOUR, HOUR, 0)])
@pytest.mark.parametrize("leaves", [True, False])
def test_it_goes_on_over_a_change_of_sequencer(clocks: tuple[int, ...], *, leaves: bool) -> None:
    network = group(*clocks)
    network.cast("b", b"before")
    network.stabilize()
    if leaves:
        network.leave("a")
    else:
        network.cut_off("a")
    network.cast("c", b"after")
    network.stabilize()
    assert network["b"].bodies == [b"before", b"after"]
    last = check(network, "bc")[-1]
    assert last == EPOCH + max(clocks[0], clocks[1]), "the later of the two sequencers' clocks"


@pytest.mark.parametrize("ahead", [HOUR, 5 * HOUR])
def test_it_does_not_stand_still_behind_a_clock_that_was_ahead(ahead: int) -> None:
    """The new sequencer's own clock is there only after hours."""
    network = group(ahead, 0, 0)
    network.cast("b", b"before")
    network.stabilize()
    network.cut_off("a")
    network.stabilize()
    for seconds in (1, 2):
        network.now += 10**9
        network.cast("c", b"after %d" % seconds)
        network.stabilize()
    before, first, second = check(network, "bc")
    assert before == EPOCH + ahead
    assert (first - before, second - first) == (10**9, 10**9)


def test_it_goes_on_with_a_sequencer_that_joined_since() -> None:
    """It knows the clock from what it got when it joined, though it saw no cast at all."""
    network = ManualNetwork("TOTAL:MBRSHIP:COM:sim")
    network.monitor = None  # no member gives state
    for name, clock in (("a", HOUR), ("b", 0)):
        network.add(name, epoch=EPOCH + clock)
        network.join(name, "" if name == "a" else "a")
        network.stabilize()
        network.cast("a", b"before")
        network.stabilize()
    network.leave("a")
    network.stabilize()
    network.add("c", epoch=EPOCH)
    network.join("c", "b")
    network.stabilize()
    network.leave("b")
    network.stabilize()
    network.cast("c", b"after")
    assert network["c"].stamps == [EPOCH + HOUR]


def test_it_goes_on_behind_what_was_tentative() -> None:
    """A packet that keeps its place over the fail-over keeps its moment; none behind it is older."""
    network = group(HOUR, 0, 0, 0)
    network.now += 1
    network.cast("a", b"tentative", degree=2)
    network.deliver("a", "b")
    assert not any(network[name].bodies for name in "abcd")
    network.cut_off("a")
    network.cast("b", b"after", degree=0)
    network.stabilize()
    assert network["b"].bodies == [b"tentative", b"after"]
    assert check(network, "bcd") == [EPOCH + HOUR + 1] * 2


def test_it_does_not_go_back_between_two_that_were_tentative() -> None:
    """The new sequencer delivers the first of them, and numbers another behind the second."""
    network = group(HOUR, 0, 0, 0, 0)
    for degree in (2, 3):
        network.now += 1
        network.cast("a", b"%d" % degree, degree)
    network.deliver("a", "b", 2)
    network.cut_off("a")
    while len(view_of(network, "b").members) > 4:
        for source, target in permutations("bcde", 2):
            network.deliver(source, target)
    for name in "cd":
        network.deliver("b", name)
        network.deliver(name, "b")
    assert network["b"].bodies == [b"2"]
    network.cast("b", b"after")
    network.stabilize()
    assert network["b"].bodies == [b"2", b"3", b"after"]
    assert check(network, "bcde")[1:] == [EPOCH + HOUR + 2] * 2


def test_it_does_not_go_back_behind_what_was_delivered_before_the_change() -> None:
    """The new sequencer has delivered the first, and holds the second: it goes on from the second's moment."""
    network = group(HOUR, 0, 0, 0, 0)
    for degree in (2, 3):
        network.now += 1
        network.cast("a", b"%d" % degree, degree)
    for name in "bc":
        network.deliver("a", name, 2)
        network.deliver(name, "a", 9)
    network.deliver("a", "b", 9)
    assert network["b"].bodies == [b"2"]
    network.cut_off("a")
    network.cast("b", b"after")
    network.stabilize()
    assert network["b"].bodies == [b"2", b"3", b"after"]
    assert check(network, "bcde") == [EPOCH + HOUR + 1, EPOCH + HOUR + 2, EPOCH + HOUR + 2]


def test_a_joiner_sees_the_moments_of_what_was_tentative() -> None:
    """Of each packet its own: the sequencer's clock is at the last one's."""
    network = group(HOUR, 0, 0)
    for body in (b"first", b"second"):
        network.now += 1
        network.cast("a", body, degree=2)
    network.deliver("a", "b", 2)
    network.cut_off("a")
    network.add("e", epoch=EPOCH)
    network.join("e", "b")
    network.stabilize()
    assert network["e"].bodies == [b"first", b"second"]
    assert check(network, "bce") == [EPOCH + HOUR + 1, EPOCH + HOUR + 2]


def view_of(network: ManualNetwork, name: str) -> View:
    view = network[name].installed
    assert view is not None
    return view
