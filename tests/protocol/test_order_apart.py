"""Members that lack descriptors or memory, so that they are apart: their order has a sequencer, and later views try again."""

from __future__ import annotations

import copy
import errno
import itertools
import os
import resource
from collections.abc import Callable, Iterable
from functools import partial
from random import Random

import pytest

from orcalike.simulator.simulation import Run
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.descriptors import DescriptorsOfOne, Handle
from orcalike.transport.drivers.sim.world import World
from orcalike.transport.errors import ProtocolError
from orcalike.transport.ring.choice import LASTS, still_apart
from orcalike.transport.view import View
from orcalike.transport.wire.message import Message
from tests.lib.manual_network import ManualNetwork
from tests.lib.order_scenarios import draw_over_either
from tests.protocol.test_order_layer import (
    CHUNK,
    SEEDS,
    STACK,
    Apart,
    are_near,
    come,
    go,
    layer_of,
    network_apart,
    network_of,
    order,
    orders,
)
from tests.protocol.test_ring_layer import bodies, let_time_pass


class Short(DescriptorsOfOne):
    """Now and then a member lacks descriptors, or memory."""

    def __init__(self, seed: int, is_near: Callable[[str, str], bool]) -> None:
        super().__init__(is_near)
        self.rng = Random(f"{seed} short")
        self.often = self.rng.choice([0.05, 0.3, 0.9])
        self.refused = 0

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        """As ever, or not."""
        if self.rng.random() < self.often:
            self.refused += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(incarnation, handle, flags)


class ShortRun(Run):
    """A run in which members lack descriptors."""

    def make_world(self) -> World:
        """As ever, but for these."""
        world = super().make_world()
        world.descriptors = self.short = Short(self.scenario.seed, world.descriptors.is_near)
        return world


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_groups_keep_their_promises_while_members_lack_descriptors(first: int) -> None:
    runs = [ShortRun(draw_over_either(seed)) for seed in range(first, first + CHUNK)]
    assert sum(run.run().delivered for run in runs) > 10 * CHUNK
    assert sum(run.short.refused for run in runs) > 10


def test_of_what_others_say_of_members_that_are_apart_only_those_in_the_view_are_kept() -> None:
    network, _ = network_apart("a b")
    layer = layer_of(network, "a")
    a, b = (network.endpoints[name].stack.me.incarnation for name in "ab")
    for other in range(100):
        layer.set_apart((b, 1_000 + other), lasts=True)
    layer.set_apart((b, a), lasts=True)
    layer.set_apart((b, a), lasts=False)
    network.call("a", partial(network.endpoints["a"].stack.nudge, layer))
    network.stabilize()
    assert orders(network, "ab") == {"TOTAL"}
    for name in "ab":
        assert layer_of(network, name).apart == {(b, a): LASTS}


def lacks(
    network: ManualNetwork, name: str, descriptors: Apart, of: Iterable[int] | None = None
) -> None:
    """That member lacks descriptors for whatever others offer, or those `of` these incarnations."""
    short = copy.copy(descriptors)
    known = (endpoint.stack.me.incarnation for endpoint in network.endpoints.values())
    short.apart = set(known if of is None else of)
    short.error = errno.EMFILE
    network.endpoints[name].stack.descriptors = short


@pytest.mark.parametrize("gone", ["a", "ad"])
def test_an_order_that_none_of_those_that_go_on_has_mapped_begins_anew(gone: str) -> None:
    """a has made it, and d has mapped it; b and c could not yet, as these leave."""
    network, descriptors = network_apart(f"a b c {gone[1:]} X")
    incarnations = {network.endpoints[name].stack.me.incarnation for name in gone}
    for name in "bc":
        lacks(network, name, descriptors, incarnations)
    network.leave("X")
    names = list(network.endpoints)
    for one, other in itertools.cycle(itertools.permutations(names, 2)):
        if orders(network, gone) == {"RING"} and order(network, gone[-1]).dump()["attached"]:
            break
        network.deliver(one, other, 1)
    for name in gone:
        network.leave(name)
    network.stabilize()
    assert orders(network, "bc") == {"RING"}
    for name in "bc":
        network.cast(name, name.encode())
    network.stabilize()
    for name in "bc":
        assert bodies(network, name)[-2:] == [b"b", b"c"]


@pytest.mark.parametrize("short", ["a", "b", "c", "ab"])
def test_what_could_not_be_mapped_for_want_of_something_is_tried_again(short: str) -> None:
    """By then members have what they lacked, though all are still there."""
    network, descriptors = network_apart("a b")
    network.add("c")
    for name in short:
        lacks(network, name, descriptors)
    network.join("c", "a")
    network.stabilize()
    assert orders(network, "abc") == {"TOTAL"}
    for name in short:
        network.endpoints[name].stack.descriptors = descriptors
    come(network, "d")
    assert orders(network, "abcd") == {"RING"}
    for name in "abcd":
        network.cast(name, name.encode())
    network.stabilize()
    for name in "abcd":
        assert sorted(bodies(network, name)[-4:]) == [b"a", b"b", b"c", b"d"]
    come(network, "e")
    assert orders(network, "abcde") == {"RING"}, "what was mapped is not apart any more"
    assert layer_of(network, "e").apart == {}


def test_what_cannot_be_mapped_is_tried_again_ever_more_seldom() -> None:
    """While c lacks descriptors each try costs a change of view, more than those that others bring about."""
    network, descriptors = network_apart("a b")
    descriptors.error = errno.ENOMEM
    network.add("c")
    descriptors.apart.add(network.endpoints["c"].stack.me.incarnation)
    network.join("c", "a")
    network.stabilize()
    view = network["a"].installed
    assert view is not None
    assert view.number == 4, "no view but for the finding"
    changes = 40
    for number in range(changes):
        come(network, f"d{number}")
        assert orders(network, "abc") == {"TOTAL"}
        go(network, f"d{number}")
        assert orders(network, "abc") == {"TOTAL"}
    view = network["a"].installed
    assert view is not None
    tries = view.number - 4 - 2 * changes
    assert 3 <= tries <= 7
    assert not network[f"d{changes - 1}"].problems


def test_one_that_cannot_make_the_order_tries_again() -> None:
    """A group of one begins so."""
    network = ManualNetwork(STACK)
    network.descriptors = DescriptorsOfOne(are_near)
    network.add("a")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        network.join("a", "")
        network.stabilize()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert orders(network, "a") == {"TOTAL"}
    come(network, "b")
    assert orders(network, "ab") == {"RING"}


@pytest.mark.parametrize("silent", ["bc cb", "bc", "cb"])
@pytest.mark.parametrize("writer", ["a", "b", ""])
def test_the_order_goes_over_for_two_of_which_one_cannot_reach_the_other(
    silent: str, writer: str
) -> None:
    """One may have no descriptor left for a link: neither offers its memory to the other one."""
    network = network_of("a b")
    network.add("c")
    network.join("c", "a")
    links = [pair for pair in itertools.permutations("abc", 2) if "".join(pair) not in silent]

    def settle() -> None:
        while sum(network.deliver(one, other) for one, other in links):
            pass

    settle()
    assert orders(network, "abc") == {"RING"}
    if writer:
        network.cast(writer, b"it waits")
        settle()
        assert all(b"it waits" not in bodies(network, name) for name in "abc")
    config = StackConfig("group", {})
    for _ in range(4):
        network.now += config.detection
        network.expire("abc", network.endpoints)
        settle()
    assert orders(network, "abc") == {"TOTAL"}
    for name in "abc":
        network.cast(name, name.encode())
    settle()
    for name in "abc":
        assert {b"a", b"b", b"c"} <= set(bodies(network, name))
        assert bodies(network, name).count(b"it waits") == bool(writer)
        view = network[name].installed
        assert view is not None
        assert [member.address for member in view.members] == ["sim:a", "sim:b", "sim:c"]
        assert [*layer_of(network, name).apart] == [
            tuple(network.endpoints[each].stack.me.incarnation for each in "cb")
        ]
        assert LASTS not in layer_of(network, name).apart.values()


class OneLeft(DescriptorsOfOne):
    """A member can map the order, and has no descriptor left for memory of its own."""

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        """As ever, and it was the last one."""
        found = super().open(incarnation, handle, flags)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        return found


def test_one_that_could_map_the_order_and_make_no_lane_tries_again() -> None:
    """In the next view, which is in memory, too, since the word of it was lost."""
    network = network_of("a b c X")
    short = network.endpoints["b"].stack
    short.descriptors = OneLeft(are_near)
    short.descriptors._of = network.descriptors._of
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    network.leave("X")
    try:
        for one, other in itertools.cycle(itertools.permutations("abcX", 2)):
            network.deliver(one, other, 1)
            if resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 0:
                break
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    short.descriptors = network.descriptors
    assert order(network, "b").dump()["attached"] is False
    network.break_links("a", "b")
    for _ in range(5):  # they have a link again before a can go on without b
        network.now += 20_000_000
        network.expire("ab", "abc")
        while network.deliver("a", "b") + network.deliver("b", "a"):
            pass
    network.stabilize()
    view = network["b"].installed
    assert view is not None
    assert len(view.members) == 3
    assert orders(network, "abc") == {"RING"}
    for name in "abc":
        network.cast(name, name.encode())
    network.stabilize()
    for name in "abc":
        assert sorted(bodies(network, name)[-3:]) == [b"a", b"b", b"c"]


def test_word_of_what_cannot_be_mapped_is_refused_if_it_has_another_form() -> None:
    network = network_of("a b")
    ring = order(network, "a")
    for kind, body in itertools.product(
        (b"\x02", b"\x03"), (b"", b"\xc0", b"\x92\x01\x02", b"\x93\x01\x02\x03")
    ):
        message = Message(kind + body)
        message.source = 1
        with pytest.raises(ProtocolError):
            ring.up_send(message)


def test_in_which_views_two_are_tried_again() -> None:
    def tried(since: int) -> list[int]:
        views = [View(1, number, 0, ()) for number in range(1, 30)]
        return [view.number for view in views if not still_apart({(2, 1): since}, view)]

    assert tried(3) == [5, 7, 11, 19]
    assert tried(LASTS) == tried(1_000) == []
    views = [View(1, number, 0, ()) for number in range(1, 30)]
    both = {(2, 1): 3, (4, 1): 5}
    assert [view.number for view in views if not still_apart(both, view)] == [5, 7, 11, 19]
    assert still_apart({**both, (5, 1): LASTS}, views[4]) == {(5, 1): LASTS}


def test_two_that_lacked_something_in_different_views_are_tried_again_together() -> None:
    network, descriptors = network_apart("a b")
    for name in "cd":
        network.add(name)
        lacks(network, name, descriptors)
        network.join(name, "a")
        network.stabilize()
        come(network, f"x{name}")  # c lacks it still, as d is found to
        assert orders(network, "ab") == {"TOTAL"}
    for number in range(2):
        come(network, f"y{number}")
        go(network, f"y{number}")
    for name in "cd":
        network.endpoints[name].stack.descriptors = descriptors
    for number in range(10):
        come(network, f"z{number}")
        go(network, f"z{number}")
    assert orders(network, "abcd") == {"RING"}


def test_a_try_that_is_put_off_is_made_as_soon_as_it_can_be() -> None:
    """In the view that was to be a try a packet is tentative, for which the view has too few members."""
    network, descriptors = network_apart("a b e")
    network.add("c")
    lacks(network, "c", descriptors)
    network.join("c", "a")
    network.stabilize()
    network.endpoints["c"].stack.descriptors = descriptors
    found = network["a"].installed
    assert found is not None
    network.cast("b", b"held", 3)
    network.deliver("b", "a", 9)  # it has its number
    network.cut_off("e")
    let_time_pass(network, ["abc"])
    network.stabilize()
    view = network["a"].installed
    assert view is not None
    assert (view.number, orders(network, "abc")) == (found.number + 1, {"TOTAL"})
    assert not still_apart(layer_of(network, "a").apart, view), "it was to be a try"
    come(network, "d")
    network.stabilize()
    assert orders(network, "abcd") == {"RING"}
    for name in "abcd":
        assert b"held" in bodies(network, name)
