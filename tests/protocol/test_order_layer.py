"""ORDER: its order goes over to a sequencer as a member comes from another host, and back to memory as that one leaves."""

from __future__ import annotations

import copy
import errno
import itertools
import os
from random import Random
from typing import Any

import msgpack
import pytest

from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.descriptors import DescriptorsOfOne, Handle
from orcalike.transport.errors import ProtocolError
from orcalike.transport.ring.choice import LASTS, Choice, can_share
from orcalike.transport.ring.fence import ROWS, Fence
from orcalike.transport.total.flush import Cut, Piece, Report
from orcalike.transport.view import Member, View
from tests.lib.manual_network import ManualNetwork
from tests.lib.order_scenarios import draw_over_either
from tests.protocol.test_ring_layer import Crowd, bodies, let_time_pass

CHUNK = 20
SEEDS = 100

STACK = "XFER:ORDER(slots=64,lane=65536):MBRSHIP:COM:sim"
"""Without PACK, so that each cast is a packet."""

EARLIER = {
    293: "casts that had no place in an order were ordered before the view was handed up",
    1536: "a member that was to ask for memory began a view that has it",
}
"""Seeds that have found faults."""


def are_near(one: str, other: str) -> bool:
    """The processes whose names are in capitals are on hosts of their own, all others on one."""
    return one == other or (one.islower() and other.islower())


class Apart(DescriptorsOfOne):
    """The kernel refuses to open what is offered to, or by, some members, for good or for want of something (`error`)."""

    def __init__(self) -> None:
        super().__init__(are_near)
        self.apart: set[int] = set()
        self.error = errno.EACCES

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        """As ever, but for these."""
        if incarnation in self.apart:
            raise OSError(self.error, os.strerror(self.error))
        return super().open(incarnation, handle, flags)


def network_of(names: str) -> ManualNetwork:
    """A group of these, at rest."""
    network = ManualNetwork(STACK)
    network.descriptors = DescriptorsOfOne(are_near)
    network.form(names)
    return network


def network_apart(names: str) -> tuple[ManualNetwork, Apart]:
    """The same on one host, where a test says of which members others cannot map the memory."""
    network = ManualNetwork(STACK)
    network.descriptors = descriptors = Apart()
    network.form(names)
    return network, descriptors


def deliver_until_frozen(network: ManualNetwork, name: str) -> None:
    """Let frames arrive, one after the other, until a member is asked to flush."""
    for one, other in itertools.cycle(itertools.permutations(network.endpoints, 2)):
        if order(network, name).frozen:
            return
        network.deliver(one, other, 1)


def order(network: ManualNetwork, name: str) -> Any:
    """The layer that orders at a member."""
    stack = network.endpoints[name].stack
    return stack.focus("RING") or stack.focus("TOTAL")


def layer_of(network: ManualNetwork, name: str) -> Any:
    """The layer ORDER of a member."""
    return network.endpoints[name].stack.focus("ORDER")


def orders(network: ManualNetwork, names: str) -> set[str]:
    """Which orders these members have now."""
    return {order(network, name).name for name in names}


def come(network: ManualNetwork, name: str) -> None:
    """One more member, and all that follows."""
    network.add(name)
    network.join(name, "a")
    network.stabilize()


def go(network: ManualNetwork, name: str) -> None:
    """It leaves, and all that follows."""
    network.leave(name)
    network.stabilize()


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_groups_keep_their_promises_under_faults(first: int) -> None:
    delivered = sum(
        Run(draw_over_either(seed)).run().delivered for seed in range(first, first + CHUNK)
    )
    assert delivered > 10 * CHUNK


def test_the_seeds_have_orders_of_both_kinds_that_follow_on_each_other() -> None:
    over = {True: 0, False: 0}
    for seed in range(CHUNK):
        run = Run(draw_over_either(seed))
        run.run()
        kinds = [view.in_memory for _, view in sorted(run.monitor.facts.views.items())]
        for before, after in itertools.pairwise(kinds):
            over[after] += before != after
    assert over[True] > 0
    assert over[False] > CHUNK // 4


@pytest.mark.parametrize("seed", EARLIER, ids=str)
def test_earlier_faults_stay_away(seed: int) -> None:
    assert Run(draw_over_either(seed)).run().steps > 0


@pytest.mark.parametrize("seed", [2, 21, 40])
def test_a_seed_has_one_run(seed: int) -> None:
    first, second = (Run(draw_over_either(seed)).run() for _ in range(2))
    assert first.trace == second.trace
    assert (first.steps, first.delivered) == (second.steps, second.delivered)


def test_the_order_goes_over_and_back_with_one_count() -> None:
    network = network_of("a b")
    network.cast("b", b"in memory")
    assert orders(network, "ab") == {"RING"}
    come(network, "X")
    assert orders(network, "abX") == {"TOTAL"}
    network.cast("X", b"by a sequencer")
    network.stabilize()
    go(network, "X")
    assert orders(network, "ab") == {"RING"}
    network.cast("b", b"in memory again")
    come(network, "X2")
    network.cast("X2", b"and back")
    network.stabilize()
    for name in "ab":
        known = [event for event in network[name].history if isinstance(event, tuple)]
        wanted = [b"in memory", b"by a sequencer", b"in memory again", b"and back"]
        assert [event[3] for event in known if event[3] in wanted] == wanted
        places = [event[0] for event in known]
        assert places == sorted(places)
        assert len(set(places)) == len(places)


def test_what_no_order_has_when_it_goes_over_is_in_the_other_one_once() -> None:
    """Both ways: b casts between the question and the view."""
    network = network_of("a b c")
    network.add("X")
    network.join("X", "a")
    deliver_until_frozen(network, "b")
    for body in (b"one", b"two"):
        network.cast("b", body)
    network.stabilize()
    assert orders(network, "abcX") == {"TOTAL"}
    for name in ("a", "b", "c", "X"):
        assert [body for body in bodies(network, name) if body in (b"one", b"two")] == [
            b"one",
            b"two",
        ]
    network.leave("X")
    deliver_until_frozen(network, "b")
    for body in (b"three", b"four"):
        network.cast("b", body)
    network.stabilize()
    assert orders(network, "abc") == {"RING"}
    for name in "abc":
        assert bodies(network, name)[-2:] == [b"three", b"four"]


@pytest.mark.parametrize("degree", [1, 2])
def test_holders_are_counted_by_the_sequencer_before_the_order_goes_over(
    degree: int,
) -> None:
    """X leaves while a packet of b has its number, and not its holders."""
    network = network_of("a b c X")
    network.cast("b", b"held", degree)
    network.deliver("b", "a", 9)  # it has its number
    network.leave("X")
    seen: list[set[str]] = []
    for one, other in itertools.islice(itertools.cycle(itertools.permutations("abcX", 2)), 2000):
        network.deliver(one, other, 1)
        kinds = orders(network, "abc")
        if not seen or seen[-1] != kinds:
            seen.append(kinds)
    network.stabilize()
    assert orders(network, "abc") == {"RING"}
    for name in "abc":
        assert bodies(network, name)[-1] == b"held"


def test_a_packet_that_has_too_few_members_for_its_degree_keeps_the_sequencer() -> None:
    """Else it would have no order to wait in; as soon as it has its holders, the order goes over."""
    network = network_of("a b X")
    network.cast("b", b"held", 2)
    network.deliver("b", "a", 9)
    network.cut_off("X")
    let_time_pass(network, ["ab"])
    network.stabilize()
    assert orders(network, "ab") == {"TOTAL"}
    assert b"held" not in bodies(network, "a")
    come(network, "c")
    network.stabilize()
    for name in "abc":
        assert b"held" in bodies(network, name)
    assert orders(network, "abc") == {"RING"}


def test_others_write_on_while_a_packet_has_too_few_members() -> None:
    """It waits for members that may never come, and what is behind it for that; none is held up to be numbered."""
    network = network_of("a b X")
    network.cast("b", b"held", 2)
    network.deliver("b", "a", 9)
    network.cut_off("X")
    let_time_pass(network, ["ab"])
    network.stabilize()
    before = order(network, "a").held
    network.cast("b", b"behind it")
    network.stabilize()
    assert order(network, "a").held == before + 1
    assert orders(network, "ab") == {"TOTAL"}


def test_members_beat_over_a_sequencer_and_rest_in_memory() -> None:
    network = network_of("a b X")
    stack = network.endpoints["a"].stack
    assert len(stack.beats) == 2
    go(network, "X")
    assert not stack.beats
    come(network, "X2")
    assert len(stack.beats) == 2
    assert stack.lease


def test_a_member_that_can_map_no_memory_stays_and_the_order_goes_over() -> None:
    """Over RING alone it has to leave."""
    network, descriptors = network_apart("a b")
    assert orders(network, "ab") == {"RING"}
    network.add("c")
    descriptors.apart.add(network.endpoints["c"].stack.me.incarnation)
    network.join("c", "a")
    network.stabilize()
    assert orders(network, "abc") == {"TOTAL"}
    network.cast("c", b"from c")
    network.stabilize()
    assert {bodies(network, name)[-1] for name in "abc"} == {b"from c"}
    come(network, "d")
    assert orders(network, "abcd") == {"TOTAL"}, "what was found of c is known to all"
    go(network, "a")
    assert orders(network, "bcd") == {"TOTAL"}
    go(network, "c")
    assert orders(network, "bd") == {"RING"}


def test_while_the_order_settles_only_the_member_that_is_waited_for_is_expelled() -> None:
    """c does not acknowledge; b waits for that as well, since nothing gets a number meanwhile."""
    network = network_of("a b c X")
    network.cast("b", b"held", 2)
    network.deliver("b", "a", 9)
    network.leave("X")
    network.deliver("X", "a", 9)  # a is frozen before it is said which members hold it
    number = 5
    for one, other in itertools.islice(itertools.cycle(itertools.permutations("abcX", 2)), 2000):
        views = [network[name].installed for name in "abc"]
        if one != "c" or not all(view is not None and view.number == number for view in views):
            network.deliver(one, other, 1)
    assert order(network, "a").accepted < order(network, "a").held
    network.cast("b", b"queued")
    for _ in range(140):
        network.now += 500_000_000
        network.expire("abc", "abc")
        for one, other in ("ab", "ba", "ac", "bc"):
            network.deliver(one, other, 99)
    view = network["a"].installed
    assert view is not None
    assert [member.address for member in view.members] == ["sim:a", "sim:b"]


def test_as_the_one_leaves_that_others_share_no_memory_with_the_order_goes_back() -> None:
    """Apart are two; here the oldest is one of each two, and the others share memory."""
    network, descriptors = network_apart("a")
    descriptors.apart.add(network.endpoints["a"].stack.me.incarnation)
    for name in "bc":
        come(network, name)
    assert orders(network, "abc") == {"TOTAL"}
    go(network, "a")
    assert orders(network, "bc") == {"RING"}


def test_the_member_that_leads_learns_of_two_others_that_are_apart() -> None:
    """b cannot map what c offers; a can, and would take memory again."""
    network, descriptors = network_apart("a b")
    network.add("c")
    network.endpoints["b"].stack.descriptors = of_b = copy.copy(descriptors)
    of_b.apart = {network.endpoints["c"].stack.me.incarnation}
    network.join("c", "a")
    for one, other in itertools.islice(itertools.cycle(itertools.permutations("abc", 2)), 600):
        network.deliver(one, other, 1)
    assert orders(network, "abc") == {"TOTAL"}
    view = network["a"].installed
    assert view is not None
    assert view.number <= 5, "it is found once"


@pytest.mark.parametrize("at", ["all", "b"])
@pytest.mark.parametrize("seed", range(30))
def test_word_of_members_that_are_apart_may_come_too_late_for_a_cut(seed: int, at: str) -> None:
    """Some time after c has come, with which b, or all, share no memory, e leaves: all that are left write on."""
    rng = Random(seed)
    network, descriptors = network_apart("a b e")
    network.add("c")
    if at == "b":
        network.endpoints["b"].stack.descriptors = descriptors = copy.copy(descriptors)
        descriptors.apart = set()
    descriptors.apart.add(network.endpoints["c"].stack.me.incarnation)
    network.join("c", "a")
    pairs = list(itertools.permutations("abec", 2))
    wait = rng.randrange(8)
    for _ in range(400):
        network.deliver(*rng.choice(pairs), rng.randint(1, 2))
        view = network["a"].installed
        if view is not None and len(view.members) == 4:
            wait -= 1
            if wait == 0:
                network.leave("e")
    for one, other in itertools.islice(itertools.cycle(pairs), 1200):
        network.deliver(one, other)
    assert orders(network, "abc") == {"TOTAL"}
    for name in "abc":
        network.cast(name, name.encode())
    network.stabilize()
    for name in "abc":
        assert {b"a", b"b", b"c"} <= set(bodies(network, name))


@pytest.mark.usefixtures("many_files")  # each member can wake each other one
def test_the_order_goes_over_for_the_member_for_which_memory_has_no_room() -> None:
    """The 65th; over RING alone it has to leave."""
    network = Crowd("XFER:ORDER(slots=64,lane=4096):MBRSHIP:COM:sim")
    network.descriptors = DescriptorsOfOne(are_near)
    for number in range(ROWS):
        network.add(f"m{number}")
        network.join(f"m{number}", "m0" if number else "")
    network.stabilize()
    names = list(network.endpoints)
    assert {order(network, name).name for name in names} == {"RING"}
    network.add("more")
    network.join("more", "m0")
    network.stabilize()
    assert {order(network, name).name for name in (*names, "more")} == {"TOTAL"}
    network.cast("more", b"of the 65th")
    network.stabilize()
    assert {bodies(network, name)[-1] for name in names} == {b"of the 65th"}
    network.leave("m7")
    network.stabilize()
    names = [name for name in network.endpoints if name != "m7"]
    assert {order(network, name).name for name in names} == {"RING"}
    network.cast("more", b"in memory")
    assert {bodies(network, name)[-1] for name in names} == {b"in memory"}


def test_a_member_in_the_next_view_has_what_others_lack_of_a_sequencers() -> None:
    """One that has not got the cut asks those that have gone over to memory."""
    network = network_of("a b X")
    for body in (b"one", b"two"):
        network.cast("a", body)
    held = order(network, "b").held
    network.deliver("a", "b", 9)  # X has not said that it holds them
    network.leave("X")
    network.stabilize()
    assert orders(network, "ab") == {"RING"}
    pieces = layer_of(network, "b").up_missing(Report(held, held).pack(), True)
    assert [(piece.seqno, piece.body[1:]) for piece in map(Piece.unpack, pieces)] == [
        (held, b"one"),
        (held + 1, b"two"),
    ]
    assert layer_of(network, "b").up_missing(Report(held, held).pack(), False) == []


def test_of_an_order_in_memory_no_member_lacks_anything() -> None:
    """Neither at one that has gone over since, nor at one that came with the view."""
    network = network_of("a b")
    report = layer_of(network, "a").up_held()
    come(network, "c")
    view = network["c"].installed
    assert view is not None
    assert view.number == 3, "no link was refused for what one asked another"
    for name in "abc":
        assert layer_of(network, name).up_missing(report, True) == []
    come(network, "X")
    for name in ("a", "X"):
        assert layer_of(network, name).up_missing(report, True) == []


def test_what_is_said_of_an_order_that_a_member_does_not_have_is_refused() -> None:
    network = network_of("a X")
    layer = layer_of(network, "a")
    held = order(network, "a").held
    fence = Fence(1, 5, {}).pack()
    lies = [
        Choice(True, {}, Cut(held, held, 0, {}, (), b"no fence").pack()),
        Choice(True, {}, Cut(held, held, 0, {}, (), fence).pack()),
        Choice(True, {}, Cut(held, held - 1, 0, {}, ()).pack()),
    ]
    layer.up_check(None, Choice(True, {}, Cut(held, held, 0, {}, ()).pack()).pack())
    malformed = (b"", b"\x93\xc3\x90", Choice(True, {}, b"\xc0").pack())
    for cut in (*malformed, *(lie.pack() for lie in lies)):
        with pytest.raises(ProtocolError):
            layer.up_check(None, cut)
    with pytest.raises(ProtocolError):
        layer.up_check(b"\x90", None)


def test_a_choice_is_read_as_it_was_made() -> None:
    choice = Choice(True, {(9, 7): LASTS, (8, 8): 5}, b"cut")
    assert Choice.unpack(choice.pack()) == choice
    wrong = [Choice(True, {(1, 2): -1}, b"").pack(), msgpack.packb([True, [[1, 2]], b""])]
    for data in (b"", b"\x90", os.urandom(3), Choice(True, {}, b"").pack()[:-1], *wrong):
        with pytest.raises(ProtocolError):
            Choice.unpack(data)


def test_memory_is_shared_by_so_many_members_of_one_host_that_are_not_apart() -> None:
    def view(count: int) -> View:
        return View(1, 2, 0, tuple(Member(f"sim:m{number}", number) for number in range(count)))

    def near(address: str) -> bool:
        return address != "sim:m5"

    assert can_share(view(64), {}, lambda address: True)
    assert not can_share(view(65), {}, lambda address: True)
    assert can_share(view(5), {(7, 1): LASTS, (4, 8): 2}, near)
    assert not can_share(view(5), {(4, 1): LASTS}, near)
    assert not can_share(view(5), {(4, 4): 1}, near)
    assert not can_share(view(6), {}, near)
