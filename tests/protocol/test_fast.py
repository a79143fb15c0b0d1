"""FAST: a lone message goes past the layers into the order in shared memory, and comes out as others do (H81)."""

from __future__ import annotations

import itertools
from functools import partial
from itertools import pairwise, permutations
from typing import cast

import pytest

from orcalike.transport import stacks
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.descriptors import DescriptorsOfOne
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message
from tests.lib.manual_network import ManualNetwork
from tests.protocol.test_joiners import joining
from tests.protocol.test_order_layer import are_near

RING = "RING(slots=64,lane=65536)"
STACK = f"PACK:XFER:{RING}:MBRSHIP:COM:sim"


def group(names: str = "a b c", stack: str = STACK) -> ManualNetwork:
    """A group of these, at rest."""
    network = ManualNetwork(stack)
    network.form(names)
    network.lines()
    return network


def bodies(network: ManualNetwork, name: str) -> list[bytes]:
    """What a member has delivered, in its order."""
    return [event[3] for event in network[name].history if isinstance(event, tuple)]


def join_c(network: ManualNetwork) -> None:
    """A member of another host joins."""
    network.add("C")
    network.join("C", "a")


def went_past(network: ManualNetwork, name: str) -> int:
    """How many messages of a member have gone past the layers."""
    return cast("int", network.endpoints[name].stack.dump()["PACK"]["past the layers"])


def test_a_lone_message_goes_past_the_layers_and_is_what_it_was() -> None:
    network = group()
    sent = [b"one", b"", b"x" * 127, b"y" * 128, b"z" * 1000]
    for body in sent:
        network.cast("b", body, degree=2)
    assert went_past(network, "b") == len(sent)
    for name in "abc":
        assert bodies(network, name) == sent
    assert network["a"].history == network["b"].history == network["c"].history


def test_its_memory_is_used_again_and_again() -> None:
    """The order's slots, and the own lane, which is full of what was written before."""
    network = group()
    sent = [b"%d:" % number + b"\xff" * (97 * number % 1500) for number in range(300)]
    for body in sent:
        network.cast("b", body)
    network.cast("a", b"")  # which needs room that the other one has to leave
    assert went_past(network, "b") == len(sent)
    assert went_past(network, "a") == 1
    for name in "abc":
        assert bodies(network, name) == [*sent, b""]


def test_its_time_is_that_at_which_it_was_written() -> None:
    network = group()
    for number in range(3):
        network.now += 1_000
        network.cast("b", b"%d" % number)
    assert went_past(network, "b") == 3
    stamps = network["b"].stamps[-3:]
    assert [later - earlier for earlier, later in pairwise(stamps)] == [1_000, 1_000]
    assert network["a"].stamps[-3:] == network["c"].stamps[-3:] == stamps


def test_what_is_before_it_in_the_order_comes_first() -> None:
    network = group()
    network.asleep = {"a"}
    network.cast("b", b"of b")
    network.cast("a", b"of a")
    assert went_past(network, "b") == 1
    assert went_past(network, "a") == 0, "it went as others do, since there was news"
    network.asleep = set()
    network.cast("c", b"of c")
    for name in "abc":
        assert bodies(network, name) == [b"of b", b"of a", b"of c"]


def test_a_message_that_comes_into_the_order_meanwhile_comes_first() -> None:
    """Another member's, between the look and the swap."""
    network = group()
    network.asleep = {"a"}
    stack = network.endpoints["a"].stack

    def meanwhile(step: str) -> None:
        if step == "W1":
            stack.on_mark = None
            network.cast("b", b"of b")

    stack.on_mark = meanwhile
    network.cast("a", b"of a")
    assert went_past(network, "a") == 1
    network.asleep = set()
    network.cast("c", b"of c")
    for name in "abc":
        assert bodies(network, name) == [b"of b", b"of a", b"of c"]
    stack.on_mark = None
    network.cast("a", b"more")
    assert bodies(network, "c")[-1] == b"more"


def test_a_message_of_this_member_that_is_cast_meanwhile_comes_first() -> None:
    """As another thread may, which has no need of the lock: its number is the lower one."""
    network = ManualNetwork(STACK)
    network.monitor = None  # for which what is cast in the midst of a cast comes after it
    network.form("a b")
    stack = network.endpoints["a"].stack

    def meanwhile(step: str) -> None:
        if step == "W1":
            stack.on_mark = None
            stack.top.cast(Message(b"first"))

    stack.on_mark = meanwhile
    network.cast("a", b"second")
    assert went_past(network, "a") == 1
    for name in "ab":
        assert bodies(network, name) == [b"first", b"second"]


def test_what_this_member_has_cast_and_not_got_back_comes_first() -> None:
    network = group("a b")
    network.credit("b", False)
    sent = [
        b"%d" % number for number in range(200)
    ]  # more than there is room for, as b applies nothing
    for body in sent:
        network.cast("a", body)
    past = went_past(network, "a")
    assert 0 < past < len(sent)
    network.credit("b", True)
    for _ in range(20):
        network.now += 100_000_000
        network.expire("ab", "ab")
        network.stabilize()
    assert bodies(network, "a") == bodies(network, "b") == sent
    network.cast("a", b"last")
    assert went_past(network, "a") == past + 1


def test_a_degree_that_the_view_does_not_meet_holds_a_lone_message_back() -> None:
    network = group("a b")
    network.cast("a", b"for three", degree=2)
    assert went_past(network, "a") == 0
    assert bodies(network, "b") == []
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    assert bodies(network, "b") == [b"for three"]
    network.cast("a", b"again", degree=2)
    assert went_past(network, "a") == 1


def test_in_a_change_of_view_a_message_waits_for_the_next_one() -> None:
    network = group("a b c")
    network.leave("c")  # the word of it is on its way
    while not any("FLUSH" in line for line in network.lines()):
        assert any(network.deliver(one, other) for one in "abc" for other in "abc")
    before = went_past(network, "a") + went_past(network, "b")
    network.cast("a", b"of a")
    network.cast("b", b"of b")
    assert went_past(network, "a") + went_past(network, "b") == before
    network.stabilize()
    assert sorted(bodies(network, "a")) == [b"of a", b"of b"]
    assert bodies(network, "a") == bodies(network, "b")
    network.cast("a", b"later")
    assert bodies(network, "b")[-1] == b"later"


def joining_so_far(steps: int) -> ManualNetwork:
    """A group that c joins, after so many messages; its state comes last."""
    network = joining(20, STACK)
    pairs = [*permutations("bca", 2)]
    pairs.sort(key=("a", "c").__eq__)
    for _ in range(steps):
        assert any(network.deliver(*pair) for pair in pairs)
    return network


def test_a_member_without_its_state_casts_as_others_do() -> None:
    """Its casts come behind the word that it has its state, which others may wait for; at each moment."""
    tried = 0
    for steps in itertools.count():
        network = joining_so_far(steps)
        stack = network.endpoints["c"].stack
        if stack.dump()["XFER"]["complete"]:
            break
        if not stack.dump()["RING"]["attached"]:
            continue
        tried += 1
        network.cast("c", b"early")
        assert went_past(network, "c") == 0
        network.stabilize()
        network.cast("c", b"late")
        assert went_past(network, "c") == 1
        for name in "abc":
            assert network[name].bodies[20:] == [b"early", b"late"]
    assert tried


@pytest.mark.parametrize(
    "stack",
    [
        f"PACK:DROP:XFER:{RING}:MBRSHIP:COM:sim",
        f"PACK:XFER:DROP:{RING}:MBRSHIP:COM:sim",
        "PACK:XFER:TOTAL:MBRSHIP:COM:sim",
    ],
)
def test_a_layer_that_does_not_say_what_it_does_is_not_passed_by(stack: str) -> None:
    network = group("a b", stack)
    network.cast("a", b"one")
    network.stabilize()
    assert went_past(network, "a") == 0
    assert bodies(network, "a") == bodies(network, "b") == [b"one"]


def test_where_the_order_goes_over_the_way_does_too() -> None:
    """A member of another host comes, and leaves."""
    network = ManualNetwork("PACK:XFER:ORDER(slots=64,lane=65536):MBRSHIP:COM:sim")
    network.descriptors = DescriptorsOfOne(are_near)
    network.form("a b")
    past = []
    for change in (None, partial(join_c, network), partial(network.leave, "C")):
        if change:
            change()
            network.stabilize()
        for body in (b"one", b"two"):
            network.cast("b", body)
            network.stabilize()
        past.append(went_past(network, "b"))
    assert past == [2, 2, 4]
    assert bodies(network, "a") == bodies(network, "b") == 3 * [b"one", b"two"]


class Wide(Layer):
    """It puts more before each cast than there is room for past the layers."""

    name = "WIDE"
    size = 20

    def __init__(self, core: Core, config: StackConfig, me: Member) -> None:
        super().__init__(core)

    def cast(self, message: Message) -> None:
        message.push_header(b"h" * self.size)
        self.below.cast(message)

    def up_cast(self, message: Message) -> None:
        message.pop_header(self.size)
        self.above.up_cast(message)

    def fast(self) -> tuple[Layer, bytes] | None:
        """It may be passed."""
        found = self.below.fast()
        return None if found is None else (found[0], found[1] + b"h" * self.size)


@pytest.mark.parametrize(("size", "past"), [(20, 0), (15, 2)])
def test_headers_of_layers_between_have_a_bound(
    size: int, past: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wide, "size", size)
    monkeypatch.setitem(stacks._LAYERS, "WIDE", Wide)
    network = group("a b", f"PACK:WIDE:XFER:{RING}:MBRSHIP:COM:sim")
    for body in (b"one", b"two" * 10):
        network.cast("a", body)
    assert went_past(network, "a") == past
    assert bodies(network, "a") == bodies(network, "b") == [b"one", b"two" * 10]
