"""What a joiner casts before its state is complete, and state that several members give (I17, I28)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import pytest

from tests.lib import orders
from tests.lib.manual_network import ManualNetwork
from tests.lib.recording_application import RecordingApplication

pytestmark = pytest.mark.usefixtures("order")

Giving = Callable[[RecordingApplication], Iterator[bytes]]

SECOND = 1_000_000_000
MAPPED = {"TOTAL": 0, "RING": 10}
"""Frames each way, by which a joiner and its donor have mapped each other's memory, if the order is there."""


def stabilize(network: ManualNetwork, *without: tuple[str, str]) -> None:
    """All arrives, but on these ways."""
    pairs = [pair for pair in permutations(network.endpoints, 2) if pair not in without]
    while sum(network.deliver(source, target) for source, target in pairs):
        pass


def joining(count: int, stack: str = "", give: Giving | None = None) -> ManualNetwork:
    """a and b, with so many casts behind them; c is let in, and no piece of state has come.

    a gives its state as `give` says.
    """
    network = ManualNetwork(stack)
    network.form("a b")
    if give is not None:
        network["a"].up_give_state = partial(give, network["a"])  # type: ignore[method-assign]
    for name in "ab":
        network[name].piece = 1  # so that what others cast comes between the pieces
    for number in range(count):
        network.cast("a", b"%d" % number)
    network.stabilize()
    network.add("c")
    network.join("c", "a")
    stabilize(network, ("a", "c"))
    network.deliver("a", "c", 2)  # its greeting, and the view
    assert not network["c"].history
    layer = network.endpoints["c"].stack.focus("XFER")
    assert layer is not None
    assert not layer.dump()["complete"]
    return network


def test_what_a_joiner_casts_before_it_has_its_state_is_delivered_behind_that() -> None:
    """All of it, once, in its order; also if others cast meanwhile."""
    network = joining(20)
    mine = [b"of c: %d" % number for number in range(3)]
    for body in mine:
        network.cast("c", body)
        network.cast("b", b"meanwhile")
    network.stabilize()
    for name in "abc":
        assert [body for body in network[name].bodies if body.startswith(b"of c")] == mine
        assert network[name].bodies == network["a"].bodies
    assert len(network["c"].bodies) == 26
    network.leave("b")
    network.stabilize()
    assert len(network["c"].bodies) == 26, "nor once more with the next view"
    assert network.members("a") == network.members("c") == "a c"
    assert not [error for name in "abc" for error in network[name].errors]
    network.cast("c", b"at the end")
    network.stabilize()
    assert [network[name].bodies[26:] for name in "ac"] == [[b"at the end"]] * 2


@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_joiners_cast_that_waits_for_its_own_state_is_delivered(count: int) -> None:
    """Three members must hold it, and c is one of them only when its state is complete."""
    network = joining(count)
    network.cast("c", b"x", degree=2)
    network.stabilize()
    for name in "abc":
        assert network[name].bodies[count:] == [b"x"]


def give_a_part(donor: RecordingApplication) -> Iterator[bytes]:
    """The first pieces, and then no more."""
    for number, piece in enumerate(RecordingApplication.up_give_state(donor)):
        if number == 12:
            raise OSError("out of order")
        yield piece


def test_what_a_joiner_casts_comes_back_to_it_also_if_another_donor_gives() -> None:
    """The state of the second donor is as of a later place in the order: what came before is in it.

    A cast of the joiner's own there would never be handed up to it, and PACK would wait for that.
    """
    network = joining(20, orders.simulated_stack(), give_a_part)
    network.cast("c", b"x")
    network.stabilize()
    layer = network.endpoints["c"].stack.focus("XFER")
    assert layer is not None
    assert layer.dump()["tried"] == 1, "the first donor failed"
    network.cast("c", b"y")
    network.stabilize()
    for name in "abc":
        assert network[name].bodies[20:] == [b"x", b"y"]


def test_a_change_of_view_while_the_state_comes_loses_none_of_a_joiners_casts() -> None:
    network = joining(20)
    network.cast("c", b"x")
    network.leave("b")
    network.cast("c", b"y")
    network.stabilize()
    assert network.members("c") == "a c"
    assert network["c"].bodies[-2:] == network["a"].bodies[-2:] == [b"x", b"y"]
    assert network["c"].bodies == network["a"].bodies


@pytest.mark.parametrize("sizes", [(8, 3), (3, 8), (1, 30)])
def test_a_joiner_takes_its_state_from_one_of_several_that_give(sizes: tuple[int, int]) -> None:
    """The only member with replicas dies before it is known that b and c have all it had.

    Both give to d, each in pieces of its own size; a state of pieces of both is no member's.
    """
    network = ManualNetwork()
    network.form("w a", witness="w")
    for number in range(20):
        network.cast("a", b"%d" % number)
    network.stabilize()
    for name in "bc":
        network.add(name)
        network.join(name, "w")
        network.deliver("w", name)
        network.deliver(name, "w", 2)  # its greeting, and JOIN
    stabilize(network, ("b", "w"), ("c", "w"))
    assert network.members("b") == "w a b c"
    for name, size in zip("bc", sizes, strict=True):
        assert len(network[name].bodies) == 20
        network[name].piece = size
    network.cut_off("a")
    network.add("d")
    network.join("d", "w")
    network.deliver("w", "d")
    network.deliver("d", "w", 2)
    for _ in range(200):  # piece by piece, in turn
        for source, target in permutations("wbcd", 2):
            network.deliver(source, target, 2 if source == "c" else 1)
    assert network.members("d") == "w b c d"
    assert network["d"].history == network["b"].history == network["c"].history
    assert len(network["d"].bodies) == 20
    network.cast("d", b"after")
    network.stabilize()
    assert [network[name].bodies[20:] for name in "bcd"] == [[b"after"]] * 3


@pytest.mark.parametrize("arrived", [0, 1, 5])
def test_a_joiner_asks_another_member_if_its_donor_gives_nothing_any_more(
    arrived: int, order: str
) -> None:
    """The donor beats, and its links stand; it hangs after so many frames."""
    network = ManualNetwork()
    network.form("w a b", witness="w")
    network["a"].piece = network["b"].piece = 1
    for number in range(20):
        network.cast("a", b"%d" % number)
    network.stabilize()
    network.add("c")
    network.join("c", "w")
    stabilize(network, ("a", "c"), ("c", "a"))
    for _ in range(MAPPED[order] + arrived):
        network.deliver("a", "c")
        network.deliver("c", "a")
    hangs = list(permutations("abcw", 2))
    hangs = [pair for pair in hangs if "a" in pair]
    end = network.now + 100 * SECOND
    while network.now < end:
        network.now += SECOND // 10
        for name, endpoint in network.endpoints.items():
            for member in endpoint.stack.beats:
                endpoint.stack.heard(member.incarnation, network.now)
            if name != "a":
                network.call(name, endpoint.stack.expire)
        stabilize(network, *hangs)
    assert network.members("b").split()[:3] == ["w", "a", "b"], "no member waited for it but c"
    assert network["c"].history == network["b"].history
    network.stabilize()
    assert network["c"].history == network["a"].history


def test_joiners_that_end_before_they_are_in_keep_no_group_waiting() -> None:
    """Their ends were certain, and seen when no view had them yet; they are most of the view that has."""
    network = ManualNetwork()
    network.form("a b")
    for name in "cde":
        network.add(name)
        network.join(name, "a")
        for source, target in ((name, "a"), ("a", name), (name, "a")):
            # It asks, and no view can have it before b has answered a.
            network.deliver(source, target)
    a = network.endpoints["a"]
    for name in "cde":
        network.call("a", partial(a.stack.link_down, network.link("a", name), "it has ended"))
        incarnation = network.endpoints[name].stack.me.incarnation
        assert network.monitor is not None
        network.monitor.die(incarnation)
        network.call("a", partial(a.stack.died, incarnation))
        a.links[network.link("a", name)] = None
    stabilize(network, *(pair for name in "cde" for pair in ((name, "a"), ("a", name))))
    assert network.members("a") == network.members("b") == "a b"
