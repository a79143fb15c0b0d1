"""Degrees that a view has too few members for: they wait, or MIN(r, members - 1) counts (Amoeba 3.1)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from orcalike.transport.degree import AVAILABLE
from orcalike.transport.wire.message import Message
from tests.lib.manual_network import ManualNetwork
from tests.lib.orders import SEQUENCED

pytestmark = pytest.mark.usefixtures("order")


def group(names: str, witness: str = "") -> ManualNetwork:
    network = ManualNetwork()
    network.form(names, witness)
    return network


def lower(network: ManualNetwork, name: str, least: int) -> None:
    """The group of this member takes what there is of members for enough."""
    network.call(name, lambda now: network.endpoints[name].stack.top.degree(least | AVAILABLE))
    network.call(name, network.endpoints[name].stack.expire)


def lose(network: ManualNetwork, name: str) -> None:
    """A member's process ends, and all others see it."""
    gone = network.endpoints[name].stack.me.incarnation
    network.cut_off(name)
    for other, endpoint in network.endpoints.items():
        if other != name:
            network.call(other, partial(endpoint.stack.died, gone))
    network.stabilize()


@pytest.mark.parametrize("witness", ["", "a"])
def test_what_the_view_is_too_small_for_goes_if_the_group_says_so(witness: str) -> None:
    """Of two members, one with a witness: before that it stays with its sender."""
    network = group("a b", witness)
    network.cast("b", b"x", 3)
    network.stabilize()
    assert network["b"].bodies == []
    lower(network, "b", 3)
    network.stabilize()
    assert network["b"].bodies == network["a"].bodies == [b"x"]


@SEQUENCED
def test_as_many_hold_it_as_there_can_be() -> None:
    """Of three members with degree 5 all must hold it: MIN(5, 3 - 1) others."""
    network = group("a b c")
    for name in "abc":
        lower(network, name, 5)
    network.stabilize()
    network.cast("a", b"x", 5)
    network.deliver("a", "b")
    network.deliver("b", "a")
    assert network["a"].bodies == []
    network.deliver("a", "c")
    network.deliver("c", "a")
    assert network["a"].bodies == [b"x"]


@SEQUENCED
def test_the_sequencer_need_not_know_the_rule() -> None:
    """It travels with the packet: a witness orders for groups whose options it does not know."""
    network = group("a b c d", "a")
    lower(network, "b", 4)
    network.cast("b", b"x", 4)
    network.deliver("b", "a")
    network.deliver("a", "b")
    network.deliver("b", "a")
    assert network["b"].bodies == []
    network.stabilize()
    assert network["b"].bodies == network["d"].bodies == [b"x"]


@SEQUENCED
def test_what_is_tentative_when_members_are_lost_goes_on_with_those_that_are_left() -> None:
    network = group("a b c")
    for name in "abc":
        lower(network, name, 2)
    network.stabilize()
    network.cast("a", b"x", 2)
    network.deliver("a", "b")  # two of the three that must hold it
    network.deliver("b", "a")
    assert network["a"].bodies == []
    lose(network, "c")
    assert network["a"].bodies == network["b"].bodies == [b"x"]


@SEQUENCED  # in shared memory all members hold all that there is
@pytest.mark.parametrize(("degree", "in_effect"), [(1, 1), (2, 1), (0, 0), (254, 254)])
def test_which_members_may_go_on_is_decided_by_the_degree_that_counts(
    degree: int, in_effect: int
) -> None:
    """With two members R is at most 1, or those that hold nothing could go on (H1)."""
    network = group("a b")
    lower(network, "a", degree)
    mbrship: Any = network.endpoints["a"].stack.focus("MBRSHIP")
    assert mbrship.least == in_effect


def test_a_packet_that_has_not_left_may_be_changed() -> None:
    """One that waits for members is found; one that is on its way to the sequencer is not."""
    network = group("a b")
    network.cast("b", b"early", 0)
    endpoint, message = network.endpoints["b"], Message(b"late")
    message.degree = 2
    assert network.monitor is not None
    network.monitor.cast(endpoint.stack.me.incarnation, b"void", 2)
    network.call("b", lambda now: endpoint.stack.cast(message, now))
    top = endpoint.stack.top
    (found,) = top.unsent()
    assert found.body == b"late"
    found.overwrite(b"void")
    lower(network, "b", 2)
    network.stabilize()
    assert network["a"].bodies == [b"early", b"void"]
