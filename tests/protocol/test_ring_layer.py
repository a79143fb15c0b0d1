"""RING: one order in shared memory, whose views are agreed on over sockets."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.descriptors import DescriptorsOfOne, Handle
from orcalike.transport.errors import StackError
from orcalike.transport.ring import fence
from orcalike.transport.stacks import parse_stack
from tests.lib.descriptors import count_files
from tests.lib.manual_network import ManualNetwork
from tests.lib.ring_scenarios import STACK, draw_over_ring

CHUNK = 20
SEEDS = 60

EARLIER = {
    404: "a cast whose degree is a majority was delivered before so many had their state",
    622: "a coordinator that had not mapped the order made a cut that no member could read",
    1517: "a member that others had gone on without led, and waited for the cut of the view without it",
    5129: "a member that others had gone on without led, and waited for its own report",
    5958: "a member that applied nothing went from view to view, until no fence had room",
    2173: "one that had left lived on, and its silence was excused for as long as that of others",
    126: "a coordinator asked for reports before it had come to the fence itself",
    5188: "a member that was asked again for a cut came to its end while it was asked, and said so in the midst of a step",
    1358141545601857: "members that found the order full, since one hung, kept all others awake",
}
"""Seeds that have found faults."""


def group(names: str = "a b c", stack: str = STACK) -> ManualNetwork:
    """A group of these, at rest."""
    network = ManualNetwork(stack)
    network.form(names)
    network.lines()
    return network


def bodies(network: ManualNetwork, name: str) -> list[bytes]:
    """What a member has delivered, in its order."""
    return [event[3] for event in network[name].history if isinstance(event, tuple)]


def stabilize_without(network: ManualNetwork, name: str) -> None:
    """Let all arrive but what is for one member."""
    others = [each for each in network.endpoints if each != name]
    while sum(network.deliver(one, other) for one in network.endpoints for other in others):
        pass


class Crowd(ManualNetwork):
    """Many members that come and go: from most there is nothing under way."""

    def stabilize(self) -> None:
        """As ever, without a look at each link of those."""
        moved = True
        while moved:
            moved = False
            for one in self.endpoints:
                if any(self.endpoints[one].queues):
                    for other in self.endpoints:
                        moved |= self.deliver(one, other) > 0


def let_time_pass(network: ManualNetwork, parts: list[str]) -> None:
    """Until members suspect those of other parts, whose links are broken; within a part all arrives."""
    for _ in range(20):
        network.now += 100_000_000
        for part in parts:
            network.expire(part, part)
            for one in part:
                for other in part:
                    network.deliver(one, other, 99)


class OfAnotherUser(DescriptorsOfOne):
    """The kernel refuses to open what others offer."""

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        raise PermissionError(13, "Permission denied")


class OfOneThatLeaves(DescriptorsOfOne):
    """What is offered was closed meanwhile."""

    def open(self, incarnation: int, handle: Handle, flags: int) -> int:
        raise FileNotFoundError(2, "No such file or directory")


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_groups_keep_their_promises_under_faults(first: int) -> None:
    delivered = sum(
        Run(draw_over_ring(seed)).run().delivered for seed in range(first, first + CHUNK)
    )
    assert delivered > 10 * CHUNK


@pytest.mark.parametrize("views", [1, 2])
def test_groups_keep_their_promises_though_orders_end(
    views: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they do after so many views that an old incarnation would look like a later one."""
    monkeypatch.setattr(fence, "VIEWS_MAX", views)
    delivered = sum(Run(draw_over_ring(seed)).run().delivered for seed in range(CHUNK))
    assert delivered > 10 * CHUNK


@pytest.mark.parametrize("seed", EARLIER, ids=str)
def test_earlier_faults_stay_away(seed: int) -> None:
    assert Run(draw_over_ring(seed)).run().steps > 0


@pytest.mark.parametrize("seed", [3, 20, 41])
def test_a_seed_has_one_run(seed: int) -> None:
    first, second = (Run(draw_over_ring(seed)).run() for _ in range(2))
    assert first.trace == second.trace
    assert (first.steps, first.delivered) == (second.steps, second.delivered)


def test_what_is_cast_is_ordered_at_once_and_each_member_delivers_it() -> None:
    network = group()
    network.cast("b", b"one", degree=2)
    network.cast("c", b"two")
    assert network.frames("b") == network.frames("c") == [], "nothing crosses a socket"
    for name in "abc":
        assert bodies(network, name)[-2:] == [b"one", b"two"]


def test_a_member_that_sleeps_delivers_the_same_when_it_wakes() -> None:
    network = group()
    network.asleep = {"a"}
    for number in range(5):
        network.cast("b", b"%d" % number)
    assert b"4" not in bodies(network, "a")
    network.cast("a", b"own")  # which comes after what is in the order
    assert bodies(network, "a") == bodies(network, "b") == bodies(network, "c")
    assert bodies(network, "a")[-1] == b"own"


def test_one_that_is_far_behind_delivers_all_in_one_input() -> None:
    """It takes 64 packets at a time; the next ones do not wait for another input."""
    network = group(stack="XFER:RING(slots=1024,lane=65536):MBRSHIP:COM:sim")
    network.asleep = {"a"}
    for number in range(200):
        network.cast("b", b"%d" % number)
    assert b"0" not in bodies(network, "a")
    network.asleep = set()
    network.call("a", network.endpoints["a"].stack.rung)
    assert [int(each) for each in bodies(network, "a")[-200:]] == list(range(200))
    assert bodies(network, "a") == bodies(network, "b") == bodies(network, "c")


def test_a_degree_waits_for_members() -> None:
    network = group("a b")
    network.cast("a", b"three hold it", degree=2)
    network.cast("a", b"behind it")
    assert bodies(network, "b")[-1:] != [b"behind it"]
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    assert bodies(network, "a")[-2:] == [b"three hold it", b"behind it"]
    assert bodies(network, "a")[-2:] == bodies(network, "b")[-2:] == bodies(network, "c")[-2:]


def test_a_degree_that_was_met_waits_when_a_member_has_left() -> None:
    network = group("a b c")
    network.cast("a", b"three hold it", degree=2)
    assert bodies(network, "a")[-1:] == [b"three hold it"]
    network.leave("c")
    network.stabilize()
    network.cast("a", b"it waits", degree=2)
    network.stabilize()
    assert bodies(network, "a")[-1:] == bodies(network, "b")[-1:] == [b"three hold it"]
    network.add("d")
    network.join("d", "a")
    network.stabilize()
    assert (
        bodies(network, "a")[-1:]
        == bodies(network, "b")[-1:]
        == bodies(network, "d")[-1:]
        == [b"it waits"]
    )


def test_a_degree_asks_for_none_of_those_that_are_lost() -> None:
    """Those that are left hold all that is in memory: half of them, with the oldest, go on."""
    network = group("a b c d")
    for name in "abcd":
        network.call(name, lambda now, name=name: network.endpoints[name].stack.top.degree(1))  # type: ignore[misc]
    network.cast("d", b"written", degree=1)
    network.stabilize()
    network.cut_off("c")
    network.cut_off("d")
    network.cast("b", b"after", degree=1)
    network.stabilize()
    for name in "ab":
        assert bodies(network, name) == [b"written", b"after"]
    view = network["a"].installed
    assert view is not None
    assert len(view.members) == 2


def test_the_fence_ends_a_view_for_a_member_that_was_not_asked() -> None:
    """It meets the fence when it appends, and appends in the next view."""
    network = group()
    network.leave("c")
    network.deliver("c", "a", 9)  # a asks both to flush; only it has put the fence
    at = network["b"].installed
    network.cast("b", b"behind the fence")
    for name in "abc":
        assert b"behind the fence" not in bodies(network, name)
    network.stabilize()
    assert network["b"].installed != at
    assert bodies(network, "a")[-1] == bodies(network, "b")[-1] == b"behind the fence"
    assert b"behind the fence" not in bodies(network, "c")


def test_a_member_that_was_put_out_appends_nothing() -> None:
    network = group()
    network.asleep = {"c"}
    for name in "ab":
        network.break_links(name, "c")
    let_time_pass(network, ["ab"])
    view = network["a"].installed
    assert view is not None
    assert len(view.members) == 2, "c was suspected, and is out"
    network.cast("c", b"late")
    network.cast("a", b"after")
    for name in "abc":
        assert b"late" not in bodies(network, name)
    assert bodies(network, "a")[-1] == bodies(network, "b")[-1] == b"after"
    assert b"after" not in bodies(network, "c")


def behind(size: int) -> ManualNetwork:
    """A group in which a and b have written much of what c has not applied."""
    network = group(stack="XFER:RING(slots=1024,lane=8388608):MBRSHIP:COM:sim")
    network.asleep = {"c"}
    for _ in range(100):
        network.cast("a", bytes(size))
        network.cast("b", bytes(size))
    assert bodies(network, "c") == []
    return network


def test_one_that_writes_much_applies_in_an_input_as_much_of_each_other_one() -> None:
    """Else those that are ahead write on meanwhile, and stay ahead for good."""
    network = behind(1000)
    for number in range(1, 11):
        network.cast("c", bytes(1000))
        assert len(bodies(network, "c")) == 2 * number
    network.now += 1_000_000  # if it writes no more, it goes on when it would look again
    stack = network.endpoints["c"].stack
    while stack.deadline is not None and stack.deadline <= network.now:
        network.call("c", stack.expire)
    network.cast("a", b"last")
    assert len(bodies(network, "c")) == len(bodies(network, "a")) - 1 == 210


@pytest.mark.parametrize("names", ["a", "a b"])
def test_what_nothing_is_in_the_way_of_is_applied_in_the_input_that_wrote_it(names: str) -> None:
    """Much or little, also by a member that was just found to write much."""
    network = group(names)
    network.endpoints["a"].stack.waiting = 0  # nothing waits
    for size in (1000, 10, 1000):
        network.cast("a", bytes(size))
        assert bodies(network, "a")[-1] == bytes(size)


def test_one_that_writes_little_applies_all_before_it_goes_on() -> None:
    """As far as one input goes."""
    network = behind(50)
    network.cast("c", b"little")
    assert len(bodies(network, "c")) == 201


def test_a_read_finds_all_that_was_written_before_it() -> None:
    network = behind(10_000)
    network.cast("c", bytes(10_000))
    assert len(bodies(network, "c")) == 2
    network.call("c", network.endpoints["c"].stack.catch_up)
    assert len(bodies(network, "c")) == 201


def test_a_read_ends_though_others_write_all_the_time() -> None:
    """It finds what was there when it began, and no more than fits into the order."""
    network = group(stack="XFER:RING(slots=1024,lane=65536):MBRSHIP:COM:sim")
    network.asleep = {"c"}
    network.cast("a", b"first")

    def write_on(_: str) -> None:
        if len(bodies(network, "a")) < 10_000:
            network.cast("a", bytes(100))

    network["c"].say = write_on  # type: ignore[attr-defined]
    network.call("c", network.endpoints["c"].stack.catch_up)
    assert bodies(network, "c")[0] == b"first"
    assert len(bodies(network, "c")) < 3000
    assert len(bodies(network, "a")) < 10_000


def test_an_input_has_a_bound_and_the_next_one_comes_at_once() -> None:
    """Between two of them sockets are looked at, by which a joiner gets its state."""
    network = behind(10_000)
    stack = network.endpoints["c"].stack
    seen: list[int] = []
    network.call("c", stack.rung)
    while not seen or len(bodies(network, "c")) > seen[-1]:
        seen.append(len(bodies(network, "c")))
        assert seen[-1] == 200 or stack.deadline == network.now
        network.call("c", stack.expire)
    assert seen[-1] == 200
    assert max(after - before for before, after in itertools.pairwise(seen)) == 2


def test_rows_are_used_again() -> None:
    network = Crowd(STACK)
    network.form("a b")
    for number in range(70):  # more than there are rows
        name = f"m{number}"
        network.add(name)
        network.join(name, "a")
        network.stabilize()
        network.cast(name, name.encode(), degree=2)
        network.leave(name)
        network.stabilize()
        assert bodies(network, "a")[-1] == bodies(network, "b")[-1] == name.encode()
    rows = network.endpoints["a"].stack.dump()["RING"]["rows"]
    assert isinstance(rows, list)
    assert len(rows) == 3


def test_a_full_order_waits_for_the_slowest_and_goes_on() -> None:
    network = group("a b", "XFER:RING(slots=16,lane=65536):MBRSHIP:COM:sim")
    network.asleep = {"b"}
    for number in range(40):
        network.cast("a", b"%d" % number)
    assert 5 < len(bodies(network, "a")) < 20
    network.asleep = set()
    for _ in range(10):
        network.now += 1_000_000
        network.call("b", network.endpoints["b"].stack.rung)
        network.call("a", network.endpoints["a"].stack.expire)
    assert [int(each) for each in bodies(network, "a")[-40:]] == list(range(40))
    network.call("b", network.endpoints["b"].stack.expire)
    assert bodies(network, "a") == bodies(network, "b")


@pytest.mark.parametrize("freshness", [0, 1_000_000, 400_000_000])
def test_a_member_at_which_nothing_waits_looks_again_within_its_freshness(freshness: int) -> None:
    network = ManualNetwork(STACK)
    network.freshness = freshness
    network.form("a b")
    stack = network.endpoints["b"].stack
    stack.waiting = 0
    network.now += 10_000_000_000
    network.call("b", stack.expire)  # it rests
    network.cast("a", b"wakes it")
    assert bodies(network, "b")[-1] == b"wakes it"
    network.cast("a", b"the next one")
    if freshness:
        assert bodies(network, "b")[-1] == b"wakes it"
        network.now += freshness - 1
        network.call("b", stack.expire)
        assert bodies(network, "b")[-1] == b"wakes it"
        network.now += 1
        network.call("b", stack.expire)
    assert bodies(network, "b")[-1] == b"the next one"


def test_news_that_is_waited_for_comes_at_once_whatever_the_freshness() -> None:
    network = ManualNetwork(STACK)
    network.freshness = 5_000_000_000
    network.form("a b")
    for number in range(5):
        network.cast("a", b"%d" % number)
        assert bodies(network, "b")[-1] == b"%d" % number


def test_views_end_though_a_member_applies_nothing() -> None:
    network = group("a b c", "XFER:RING(slots=16,lane=65536):MBRSHIP:COM:sim")
    network.credit("b", given=False)
    for number in range(40):
        network.cast("a", b"%d" % number)
    assert len(bodies(network, "b")) < 20
    for number in range(20):  # more views than the order has slots
        name = f"m{number}"
        network.add(name)
        network.join(name, "a")
        network.stabilize()
        assert len(network["b"].installed.members) == 4  # type: ignore[union-attr]
        network.leave(name)
        network.stabilize()
    network.credit("b", given=True)
    for _ in range(10):
        network.now += 1_000_000
        for name in "abc":
            network.call(name, network.endpoints[name].stack.expire)
    assert [int(each) for each in bodies(network, "b")[-40:]] == list(range(40))


def test_a_member_that_cannot_map_the_order_says_why_and_leaves() -> None:
    network = group("a b")
    network.add("c")
    network.endpoints["c"].stack.descriptors = OfAnotherUser()
    network.join("c", "a")
    network.stabilize()
    [why] = network["c"].denied
    assert "cannot be mapped: [Errno 13] Permission denied. If it is of another user" in why
    assert "use ORDER" in why
    assert network["c"].exited is not None
    network.cast("a", b"they go on", degree=1)
    assert bodies(network, "b")[-1] == b"they go on"


def test_of_two_that_cannot_map_each_other_the_younger_leaves() -> None:
    """Whichever of them it is that may not: a joiner puts none of the others out."""
    network = group("a b")
    network.endpoints["b"].stack.descriptors, usual = (
        OfAnotherUser(),
        network.endpoints["b"].stack.descriptors,
    )
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    [why] = network["c"].denied
    assert "cannot map the memory of this member: [Errno 13] Permission denied" in why
    assert network["c"].exited is not None
    network.endpoints["b"].stack.descriptors = usual
    network.cast("b", b"they go on", degree=1)
    assert bodies(network, "a")[-1] == bodies(network, "b")[-1] == b"they go on"
    assert network["b"].denied == []


def test_a_joiner_that_is_expelled_before_it_has_mapped_the_order_is_not_refused() -> None:
    """It is to ask again, as any joiner that was expelled: what is offered to it meanwhile says only that it is out."""
    network = group("a b")
    network.add("c")
    network.join("c", "a")
    while network["c"].installed is None:
        for source, target in itertools.permutations("abc", 2):
            if network["c"].installed is None:
                network.deliver(source, target)
    let_time_pass(network, ["ab"])
    assert [each.address for each in network["a"].installed.members] == ["sim:a", "sim:b"]  # type: ignore[union-attr]
    network.stabilize()
    assert network["c"].denied == []
    assert "expelled" in str(network["c"].exited)


def test_a_member_that_leaves_while_others_map_its_memory_is_no_trouble() -> None:
    """The offer of one that is gone already: the others stay, and map the next one."""
    network = group("a b")
    descriptors = network.endpoints["b"].stack.descriptors
    network.endpoints["b"].stack.descriptors = OfOneThatLeaves()
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    network.cast("b", b"waits for c")
    assert network["b"].denied == []
    network.endpoints["b"].stack.descriptors = descriptors
    let_time_pass(network, ["abc"])
    assert bodies(network, "c") == bodies(network, "a") == [b"waits for c"]
    assert network["b"].exited is None


def test_random_casts_and_leaves_end_in_one_order() -> None:
    rng = Random(7)
    network = group("a b c d")
    for number in range(300):
        name = rng.choice("abcd")
        network.asleep = set(rng.sample("abcd", rng.randrange(4)))
        network.cast(name, b"%d" % number, degree=rng.choice([0, 0, 1, 3, 254, 255]))
    network.asleep = set()
    network.cast("a", b"last")
    network.stabilize()
    assert bodies(network, "a") == bodies(network, "b") == bodies(network, "c")
    assert len(bodies(network, "a")) > 300


@pytest.mark.parametrize("layer", ["RING(slots=17)", "RING(lane=100)", "RING(slots=8)"])
def test_sizes_are_powers_of_two(layer: str) -> None:
    with pytest.raises(StackError, match="RING takes 16 to 4194304 slots and a lane of 4096"):
        parse_stack(f"{layer}:MBRSHIP:COM:sim")


def test_it_needs_one_host() -> None:
    with pytest.raises(StackError, match="RING needs ONE_HOST from below: run it over unix"):
        parse_stack("PACK:XFER:RING:MBRSHIP:COM:tcp")
    specs = parse_stack("PACK:XFER:RING:MBRSHIP:COM:unix")
    assert [spec.cls.name for spec in specs][2] == "RING"


def test_groups_that_were_reset_have_orders_of_their_own() -> None:
    """Two lineages begin at one fence: the memory is not for both."""
    network = group("a b")
    network.monitor = None  # data are lost, as the program wants it
    for each in network.endpoints.values():
        each.application.monitor = None
    network.break_links("a", "b")
    let_time_pass(network, ["a", "b"])
    for name in "ab":
        stack = network.endpoints[name].stack
        network.call(name, lambda now, stack=stack: stack.reset(1, now))  # type: ignore[misc]
    let_time_pass(network, ["a", "b"])
    for name in "ab":
        view = network[name].installed
        assert view is not None
        assert len(view.members) == 1
        network.cast(name, name.encode())
    assert b"a" in bodies(network, "a")
    assert b"b" in bodies(network, "b")
    assert b"b" not in bodies(network, "a")
    assert b"a" not in bodies(network, "b")


def test_descriptors_are_closed_with_the_members() -> None:
    """Memory, pipes of one's own, and those by which others are woken."""
    before = count_files()
    for seed in range(4):
        Run(draw_over_ring(seed)).run()
    assert count_files() == before
