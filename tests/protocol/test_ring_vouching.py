"""What a member has left in memory says whether it has gone on without others (H13, ADR-26)."""

from __future__ import annotations

import itertools

from tests.lib.manual_network import ManualNetwork
from tests.lib.ring_scenarios import STACK
from tests.protocol.test_ring_layer import OfOneThatLeaves, group, let_time_pass


def vouches(network: ManualNetwork, name: str, dead: str) -> bool:
    """Whether a member could say that another one, if it had ended now, has not ended their view without it."""
    layer = network.endpoints[name].stack.focus("RING")
    assert layer is not None
    return layer.up_vouches(network.endpoints[dead].stack.me.incarnation)


def number(network: ManualNetwork, name: str) -> int:
    """Of the view that a member is in."""
    view = network[name].installed
    assert view is not None
    return view.number


def test_a_member_vouches_for_those_that_are_attached() -> None:
    network = group("a b c")
    assert all(vouches(network, one, other) for one, other in itertools.permutations("abc", 2))
    network.leave("c")
    network.stabilize()
    assert vouches(network, "a", "b")
    assert not vouches(network, "a", "c"), "of one of no view nothing is known"


def test_no_member_vouches_for_one_that_has_gone_on_alone() -> None:
    """b and c cannot be reached by a, which goes on with d and e."""
    network = group("a b c d e")
    for far in "bc":
        network.cut_off(far)
    assert vouches(network, "b", "a")
    let_time_pass(network, ["ade"])
    assert number(network, "a") == number(network, "b") + 1
    assert not vouches(network, "b", "a")
    assert not vouches(network, "c", "a")
    assert vouches(network, "b", "d"), "it has decided nothing"
    assert vouches(network, "d", "a"), "of this view it has not"


def test_one_that_has_accepted_vouches_for_the_one_that_has_gone_on_without_others() -> None:
    """d has not got the view that a has decided on without b and c; it would carry it on."""
    network = ManualNetwork(STACK)
    network.now = 1  # at 0 none is waited for
    network.form("a b c d e")
    for far in "bc":
        network.cut_off(far)
    before = number(network, "a")
    for one, other in itertools.islice(itertools.cycle(itertools.permutations("ade", 2)), 600):
        if number(network, "a") == before:
            network.now += 1_000_000
            network.expire("ade", "ade")
            network.deliver(one, other, 1)
    assert [number(network, name) - before for name in "adb"] == [1, 0, 0]
    assert vouches(network, "d", "a")
    assert not vouches(network, "b", "a")


def test_no_member_vouches_for_one_that_is_not_attached() -> None:
    """It cannot say in memory what it does."""
    network = ManualNetwork(STACK)
    network.form("a b")
    network.add("c")
    network.join("c", "a")
    for _ in range(9):
        for one, other in itertools.permutations("abc", 2):
            if other != "c" or network["c"].installed is None:
                network.deliver(one, other, 1)
    assert network["c"].installed == network["a"].installed
    assert not vouches(network, "a", "c")
    network.stabilize()
    assert vouches(network, "a", "c")


def test_no_member_vouches_for_one_that_had_no_row_in_its_view() -> None:
    """d attaches one view later than it has come, and may have ended the view of e, which knows of no later one, in between."""
    network = group("a b e")
    network.add("d")
    network.endpoints["d"].stack.descriptors = OfOneThatLeaves()
    network.join("d", "a")
    network.stabilize()
    assert number(network, "d") == number(network, "e")
    assert not vouches(network, "e", "d")
    network.cut_off("e")
    let_time_pass(network, ["abd"])
    assert number(network, "d") == number(network, "e") + 1
    network.endpoints["d"].stack.descriptors = network.descriptors
    let_time_pass(network, ["abd"])
    assert number(network, "d") == number(network, "e") + 1
    assert vouches(network, "a", "d")
    assert not vouches(network, "e", "d")
