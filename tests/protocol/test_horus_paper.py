"""Sentences of the Horus paper (van Renesse, Hickey and Birman, 1994), as tests."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from orcalike.simulator.checkers.facts import Installed, Violation
from orcalike.simulator.generator import draw
from orcalike.simulator.simulation import Run
from orcalike.transport.errors import StackError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.ring import SharedOrder
from orcalike.transport.layers.total import Total
from orcalike.transport.stacks import LayerSpec, layers, parse_stack
from orcalike.transport.wire.message import Message
from tests.lib import manual_network, orders
from tests.lib.manual_network import ManualNetwork
from tests.lib.orders import SEQUENCED
from tests.protocol.test_swarm import calm

pytestmark = pytest.mark.usefixtures("order")

KNOWN = {info.name: info for info in layers()}
LAYERS = ["PACK", "XFER", "TOTAL", "MBRSHIP", "DROP"]
BODIES = [b"a", b"a", b"b", b"b", b"c", b"after"]
"""What `bodies_on` a stack that works are."""


def bodies_on(stack: str) -> list[bytes]:
    """What a group on this stack delivers: it forms, orders, gives state and lets a member go."""
    network = ManualNetwork(stack)
    network.form("a b c")
    for name in "abcab":
        network.cast(name, name.encode())
    network.stabilize()
    assert len(network["b"].bodies) == 5
    assert network["a"].bodies == network["b"].bodies == network["c"].bodies
    network.leave("a")
    network.cast("c", b"after")
    network.stabilize()
    assert not [error for name in "abc" for error in network[name].errors]
    assert network["b"].bodies == network["c"].bodies
    return sorted(network["b"].bodies[:5]) + network["b"].bodies[5:]


@pytest.mark.parametrize(
    "layers",
    [o for n in range(2, 6) for o in permutations(LAYERS, n) if "TOTAL" in o],
    ids=":".join,
)
def test_any_order_of_layers_whose_needs_are_met(layers: tuple[str, ...], order: str) -> None:
    """4: layers stack in any order, "although [...] a partial order" holds: each needs semantics
    from below (H53). What is not refused works.
    """
    layers = tuple(name.replace("TOTAL", order) for name in layers)
    text = ":".join((*layers, "COM:sim"))
    given = {"FIFO", "ANY_SIZE", "ONE_HOST"}
    fits = True
    for name in reversed(layers):
        fits = fits and KNOWN[name].needs <= given
        given |= KNOWN[name].promises
    if fits:
        assert bodies_on(text) == BODIES
    else:
        with pytest.raises(StackError, match="from below: put"):
            parse_stack(text)


def test_a_layer_may_stand_in_a_stack_more_than_once(order: str) -> None:
    """5: "we stacked the fragmentation layer ten times" (H53)."""
    stack = "DROP:PACK:XFER:" + "DROP:" * 5 + f"{order}:" + "DROP:" * 5 + "MBRSHIP:DROP:COM:sim"
    assert bodies_on(stack) == BODIES


class Thick(Layer):
    """Pushes a header larger than a message's headroom."""

    name = "THICK"
    header = b"h" * 200

    def __init__(self, core: Core, config: object, me: object) -> None:
        super().__init__(core)

    def cast(self, message: Message) -> None:
        message.push_header(self.header)
        self.below.cast(message)

    def send(self, message: Message, members: tuple[int, ...]) -> None:
        message.push_header(self.header)
        self.below.send(message, members)

    def contact(self, message: Message, address: str) -> None:
        message.push_header(self.header)
        self.below.contact(message, address)

    def up_cast(self, message: Message) -> None:
        assert message.pop_header(200) == self.header
        self.above.up_cast(message)

    def up_send(self, message: Message) -> None:
        assert message.pop_header(200) == self.header
        self.above.up_send(message)


def test_headers_may_be_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """3: each layer pushes its own header going down, and pops it going up."""

    def with_thick(text: str) -> list[LayerSpec]:
        specs = parse_stack(text)
        return [spec for each in specs for spec in (LayerSpec(Thick), each)]

    monkeypatch.setattr(manual_network, "parse_stack", with_thick)
    assert bodies_on(orders.manual_stack()) == BODIES
    assert bodies_on(orders.simulated_stack()) == BODIES


def test_members_that_go_from_view_to_view_got_the_same_messages() -> None:
    """4.3: processes that go together from one view to the next have "the same set of messages
    (virtual synchrony)" (H03). A cast that b has and c has not is there before the view.
    """
    network = ManualNetwork()
    network.form("a b c")
    network.asleep = {"c"}
    network.cast("a", b"x")
    network.deliver("a", "b")
    assert (network["b"].bodies, network["c"].bodies) == ([b"x"], [])
    network.asleep = set()
    network.leave("a")
    network.stabilize()
    assert network["b"].history == network["c"].history
    assert isinstance(network["c"].history[-1], Installed)
    assert network["c"].bodies == [b"x"]


@SEQUENCED
def test_from_flush_to_view_nothing_is_delivered() -> None:
    """4.3: a member that has agreed to the flush ignores casts of the view, but keeps them (H62)."""
    network = ManualNetwork()
    network.form("a b c")
    network.leave("a")
    network.cast("b", b"x")
    network.deliver("a", "b")
    network.deliver("b", "a", 9)
    assert network["a"].bodies == []
    total = network.endpoints["b"].stack.focus("TOTAL")
    assert isinstance(total, Total)
    assert total.frozen
    network.stabilize()
    assert network["b"].bodies == network["c"].bodies == [b"x"]


def test_views_are_a_succession_of_numbered_lists() -> None:
    """2: each member sees "a sequence of views", and joining and leaving are two of its causes
    (H02).
    """
    network = ManualNetwork()
    network.form("a b c")
    network.leave("b")
    network.stabilize()
    views = [event for event in network["c"].history if isinstance(event, Installed)]
    assert [(view.identity, view.members) for view in views] == [
        ((1, 1, 0), (1,)),
        ((1, 2, 1 << 10), (1, 2)),
        ((1, 3, 1 << 10), (1, 2, 3)),
        ((1, 4, 1 << 10), (1, 3)),
    ]


def test_state_transfer_while_others_go_on() -> None:
    """4.8: a joiner gets the state, and the others do not wait for it (H76)."""
    network = ManualNetwork()
    network.form("a b")
    network["a"].piece = network["b"].piece = 1  # so that others go on between the pieces
    for i in range(50):
        network.cast("b", str(i).encode())
    network.stabilize()
    network.add("c")
    network.join("c", "b")
    while not (view := network["a"].installed) or len(view.members) < 3:
        for source, target in permutations("abc", 2):
            network.deliver(source, target)
    network.cast("a", b"meanwhile")
    while network["b"].bodies[-1] != b"meanwhile":
        for source, target in permutations("abc", 2):
            network.deliver(source, target)
    assert not network["c"].history
    network.stabilize()
    assert network["c"].history == network["a"].history


def test_send_reaches_a_subset() -> None:
    """Table 1: `send` is a message to a subset of the members (H26, H42)."""
    network = ManualNetwork()
    network.form("a b c")
    network.call("a", lambda now: network.endpoints["a"].stack.send(Message(b"x"), (2,), now))
    network.stabilize()
    assert (network["b"].sends, network["c"].sends) == ([], [(0, b"x")])


def test_focus_and_dump(order: str) -> None:
    """Table 1: `focus` gives a handle on one layer, `dump` what it knows (H33, H34)."""
    network = ManualNetwork()
    network.form("a b")
    stack = network.endpoints["b"].stack
    layer = stack.focus(order)
    assert isinstance(layer, Total if order == "TOTAL" else SharedOrder)
    assert layer.dump()["next"] == layer.next
    assert stack.dump()["COM"] == {"peers": {"sim:a": 0}, "refused": {}}


SMALL_GROUPS = [seed for seed in range(14) if draw(seed).size < 9]
"""What more members deliver is no other order, but takes longer."""

STOPPED = ("I28", "E1")
"""What is found if a group stands still, or says that something is wrong."""

FAULTS = ["lose=5", "repeat=20", "reorder=20", "lose=2,repeat=10,reorder=10,delay=10"]


@SEQUENCED
@pytest.mark.parametrize("where", ["MBRSHIP:DROP({}):COM:sim", "DROP({}):MBRSHIP:COM:sim"])
@pytest.mark.parametrize("faults", FAULTS)
def test_safety_needs_no_luck(faults: str, where: str) -> None:
    """4: a layer that misses what it needs from below may stop; it does not deliver wrongly.

    TOTAL needs FIFO. If messages are lost or reordered below it, members stay behind, and say
    so; none of them delivers another order than the others.
    """
    complaints = 0
    for seed in SMALL_GROUPS:
        stack = "PACK:XFER:TOTAL:" + where.format(faults)
        try:
            Run(replace(calm(seed), stack=stack)).run()
        except Violation as violation:
            if violation.id not in STOPPED:
                raise
            complaints += 1
    assert bool(complaints) is not faults.startswith("repeat"), "what is repeated does no harm"


@SEQUENCED  # in shared memory: `test_ring_layer.py`
def test_one_seed_is_one_schedule() -> None:
    """The core is a function of its inputs: the same seed, the same trace (I33)."""
    seeds = [seed for seed in range(12) if 1 < draw(seed).size < 7]
    assert len(seeds) == 8
    traces = [Run(draw(seed)).run().trace for seed in seeds]
    assert traces == [Run(draw(seed)).run().trace for seed in seeds]
    assert len(set(traces)) == len(seeds)
