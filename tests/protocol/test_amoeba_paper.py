"""Sentences of the Amoeba group communication paper (Kaashoek and Tanenbaum, 1996), as tests."""

from __future__ import annotations

from itertools import permutations

import pytest

from orcalike.simulator.checkers.facts import Installed
from tests.lib.manual_network import ManualNetwork
from tests.lib.orders import SEQUENCED

pytestmark = pytest.mark.usefixtures("order")

NAMES = "abc"


def group(names: str = "a b c", stack: str = "") -> ManualNetwork:
    network = ManualNetwork(stack)
    network.form(names)
    network.lines()
    return network


@pytest.mark.parametrize("arrivals", list(permutations(["ba", "ca", "ab", "ac"])), ids=" ".join)
def test_concurrent_messages_come_in_one_order(arrivals: tuple[str, ...]) -> None:
    """2.2: "It never happens that member 1 sees A and then B, and member 2 sees B and then A."

    A19. Whatever arrives first where.
    """
    network = group()
    network.cast("b", b"A")
    network.cast("c", b"B")
    for arrival in arrivals:
        network.deliver(arrival[0], arrival[1])
    network.stabilize()
    orders = [network[name].bodies for name in NAMES]
    assert orders[0] in ([b"A", b"B"], [b"B", b"A"])
    assert orders == [orders[0]] * 3


def test_one_senders_messages_come_in_its_order() -> None:
    """2.2: "The group primitives guarantee a total ordering (with FIFO) per group." """
    network = group()
    sent = [str(i).encode() for i in range(20)]
    for body in sent:
        network.cast("b", body)
        network.cast("c", b"between")
    network.stabilize()
    for name in NAMES:
        assert [body for body in network[name].bodies if body != b"between"] == sent


@pytest.mark.parametrize("cast_is_numbered", [True, False])
def test_a_join_has_one_place_among_the_messages(cast_is_numbered: bool) -> None:
    """2: "either all members first receive the join and then the broadcast or all members first
    receive the broadcast and then the join." A02, A09.
    """
    network = group("a b")
    network.add("c")
    network.join("c", "a")
    if not cast_is_numbered:
        network.deliver("a", "c")
        network.deliver("c", "a", 2)
    network.cast("b", b"x")
    if cast_is_numbered:
        network.deliver("b", "a")
    network.stabilize()
    histories = [network[name].history for name in NAMES]
    assert histories == [histories[0]] * 3
    assert isinstance(histories[0][-1], Installed) == cast_is_numbered


def test_a_leave_has_one_place_among_the_messages() -> None:
    """2: "a member leaving the group [...] totally-ordered." A09."""
    network = group()
    network.cast("b", b"x")
    network.leave("c")
    network.cast("a", b"y")
    network.stabilize()
    assert network["a"].history == network["b"].history
    assert network["c"].exited == "left"
    assert network["c"].history == network["a"].history[: len(network["c"].history)]


@SEQUENCED
def test_the_sequencer_numbers_and_broadcasts() -> None:
    """3.1: "a point-to-point message is sent to the sequencer and the sequencer broadcasts the
    message" (PB, A26): one request, and one copy to each of the others.
    """
    network = group("a b c d")
    network.cast("b", b"x")
    assert [len(network.frames(name)) for name in "abcd"] == [0, 1, 0, 0]
    network.deliver("b", "a")
    assert [len(network.frames(name)) for name in "abcd"] == [3, 0, 0, 0]


@SEQUENCED
def test_members_elect_another_sequencer() -> None:
    """2.2: "the remaining group members elect a new one": the oldest, if all can tell."""
    network = group()
    network.leave("a")
    network.stabilize()
    network.cast("c", b"x")
    assert [len(network.frames(name)) for name in "bc"] == [0, 1]
    network.stabilize()
    assert network["b"].bodies == network["c"].bodies == [b"x"]
    views = [network[name].installed for name in "bc"]
    assert views[0] is not None
    assert views[0].sequencer.address == "sim:b"
    assert views[0] == views[1]


@SEQUENCED
def test_acknowledgements_ride_on_messages() -> None:
    """2.2: "acknowledgements are piggybacked on regular data messages" (A22).

    A member that casts tells what it expects by that; one that only listens says so each quarter
    of a window.
    """
    network = group(stack="XFER:TOTAL(packets=40):MBRSHIP:COM:sim")
    network.stabilize()
    network.lines()
    for _ in range(30):
        for name in "bc":
            network.cast(name, b"x")
            network.stabilize()
    assert not [line for line in network.lines() if "EXPECT" in line]
    for _ in range(30):
        network.cast("b", b"x")
        network.stabilize()
    assert [line.split(" EXPECT")[0] for line in network.lines() if "EXPECT" in line] == [
        "c->a v3"
    ] * 3


@SEQUENCED
def test_one_that_only_listens_says_so_each_half_megabyte() -> None:
    """So that what all have applied is soon let go, however large the window is."""
    network = group(stack="XFER:TOTAL:MBRSHIP:COM:sim")
    network.stabilize()
    network.lines()
    for _ in range(8):
        network.cast("b", bytes(131_072))
        network.stabilize()
    assert [line.split(" EXPECT")[0] for line in network.lines() if "EXPECT" in line] == [
        "c->a v3"
    ] * 2


@SEQUENCED
def test_the_header_does_not_grow_with_the_group() -> None:
    """4 and 6 (A40): the cost of a header is the same for any size of the group."""
    sizes = set()
    for names in ("a b", "a b c", "a b c d e f g h i"):
        network = group(names)
        network.cast("b", b"x")
        sizes.add(len(network.frames("b")[0]))
    assert len(sizes) == 1


def test_a_group_is_closed() -> None:
    """2: "To send to or to receive from a particular group, a process has to join the group." """
    network = group("a b")
    network.add("c")
    network.cast("c", b"from outside")
    network.cast("a", b"inside")
    network.stabilize()
    assert network["a"].bodies == network["b"].bodies == [b"inside"]
    assert not network["c"].history


def test_the_order_is_of_one_group() -> None:
    """2.2 (A66): "The sequencer totally orders messages for a single group": others stay out."""
    network = group("a b")
    network.add("z", group="other")
    network.join("z", "a")
    network.stabilize()
    assert any("another group than 'other'" in error for error in network["z"].errors)
    network.cast("b", b"x")
    network.stabilize()
    assert network["a"].bodies == network["b"].bodies == [b"x"]
    assert not network["z"].history
