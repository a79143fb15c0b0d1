"""STABLE, beside a model in simulated groups (`sim_stability`), and by hand (H66 to H69)."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random

import pytest

from orcalike.transport.errors import ProtocolError, StackError
from orcalike.transport.layers.stable import Matrix, Stable
from orcalike.transport.record import replaced
from orcalike.transport.stability import Stability
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message
from tests.lib import manual_network
from tests.lib.manual_network import ManualNetwork
from tests.protocol import sim_stability


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize("block", range(2))
def test_the_matrix_is_right_at_each_step(block: int) -> None:
    """The campaign runs more seeds (G34)."""
    for seed in range(40 * block, 40 * block + 40):
        try:
            sim_stability.run(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


# By hand.

STACK = "STABLE:XFER:TOTAL:MBRSHIP:COM:sim"


class Seer(manual_network.Narrator):
    """It has seen what was delivered when the test calls `sees`."""

    def up_cast(self, message: Message) -> None:
        super().up_cast(message)
        self.newest = message.copy()

    def up_stable(self, matrix: object) -> None:
        """It looks when the test does."""


def group_of(names: str, monkeypatch: pytest.MonkeyPatch, stack: str = STACK) -> ManualNetwork:
    monkeypatch.setattr(manual_network, "Narrator", Seer)
    network = ManualNetwork(stack)
    network.form(names)
    return network


def sees(network: ManualNetwork, name: str) -> None:
    """`name` acks all that was delivered to it."""
    user = network[name]
    assert isinstance(user, Seer)
    user.below.ack(user.newest)
    network.call(name, network.endpoints[name].stack.expire)


def matrix(network: ManualNetwork, name: str) -> list[list[int]]:
    layer = network.endpoints[name].stack.focus("STABLE")
    assert isinstance(layer, Stable)
    return [list(row) for row in layer.matrix.stability().matrix]


def test_an_ack_need_not_follow_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """4.4: "each member can decide what it means to 'have seen' a message" (H66)."""
    network = group_of("a b c", monkeypatch)
    network.cast("a", b"x")
    network.cast("b", b"y")
    network.stabilize()
    nothing = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert matrix(network, "a") == matrix(network, "b") == matrix(network, "c") == nothing
    sees(network, "c")
    assert matrix(network, "c") == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert matrix(network, "a") == nothing
    network.stabilize()
    assert matrix(network, "a") == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]


def test_a_report_rides_on_a_cast(monkeypatch: pytest.MonkeyPatch) -> None:
    """4.4: it "piggybacks some information on existing traffic" (H69)."""
    network = group_of("a b", monkeypatch)
    network.cast("a", b"x")
    network.stabilize()
    user = network["b"]
    assert isinstance(user, Seer)
    user.below.ack(user.newest)
    network.cast("b", b"y")
    assert len(network.frames("b")) == 1
    network.stabilize()
    assert matrix(network, "a") == [[0, 1], [0, 0]]


def test_a_joiner_has_what_it_joined_with(monkeypatch: pytest.MonkeyPatch) -> None:
    network = group_of("a b", monkeypatch)
    for _ in range(3):
        network.cast("a", b"x")
        network.stabilize()
    sees(network, "a")
    network.stabilize()
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    assert matrix(network, "a") == [[3, 0, 3], [0, 0, 0], [0, 0, 0]]
    assert matrix(network, "c") == matrix(network, "b") == matrix(network, "a")


def test_a_joiner_asks_for_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others repeat their reports at its view, when it has no state yet to put them to."""
    network = group_of("a b", monkeypatch)
    for _ in range(60):
        network.cast("a", b"x")
        network.stabilize()
    sees(network, "a")
    sees(network, "b")
    network.stabilize()
    network.add("c")
    network.join("c", "a")
    network.stabilize()
    for name in "abc":
        assert matrix(network, name) == [[60, 60, 60], [0, 0, 0], [0, 0, 0]]


def test_a_report_that_a_change_of_view_lost_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    network = group_of("a b c d", monkeypatch)
    network.cast("a", b"x")
    network.stabilize()
    sees(network, "c")
    network.leave("b")
    while (view := network["d"].installed) is None or len(view.members) == 4:
        moved = [
            network.deliver(one, other)
            for one, other in permutations("abcd", 2)
            if (one, other) != ("c", "d")
        ]
        assert any(moved)
    network.stabilize()
    assert matrix(network, "d") == matrix(network, "a") == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_a_leaver_takes_its_row_and_column(monkeypatch: pytest.MonkeyPatch) -> None:
    network = group_of("a b c", monkeypatch)
    for name in "abc":
        network.cast(name, b"x")
        network.stabilize()
    sees(network, "b")
    sees(network, "c")
    network.stabilize()
    network.leave("b")
    network.stabilize()
    assert matrix(network, "a") == matrix(network, "c") == [[0, 1], [0, 1]]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that stays behind keeps its column, and catches up with it later."""
    network = group_of("a b", monkeypatch, STACK.replace("STABLE", "STABLE(window=4)"))
    for _ in range(3):
        network.cast("a", b"x")
        network.stabilize()
        sees(network, "a")
    sees(network, "b")
    network.stabilize()
    for _ in range(20):
        network.cast("a", b"x")
        network.stabilize()
        sees(network, "a")
    network.stabilize()
    stack = network.endpoints["a"].stack
    assert stack.dump()["STABLE"]["remembered"] == 4
    assert matrix(network, "a") == [[23, 3], [0, 0]]
    sees(network, "b")
    network.stabilize()
    assert matrix(network, "a") == [[23, 23], [0, 0]]
    assert stack.dump()["STABLE"]["remembered"] == 0


def test_nonsense_is_reported_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    network = group_of("a b", monkeypatch)
    layer = network.endpoints["a"].stack.focus("STABLE")
    assert layer is not None
    for body in (b"", b"\3", b"\1", b"\1" + bytes(9)):
        message = Message(body)
        message.source = 1
        with pytest.raises(ProtocolError, match="no kind for STABLE"):
            layer.up_send(message)
    short = Message(bytes(11))
    short.source = 1
    layer.up_cast(short)
    assert network["a"].errors == ["member 1: a cast without a report"]
    assert matrix(network, "a") == [[0, 0], [0, 0]]


def test_it_stands_above_xfer() -> None:
    with pytest.raises(StackError, match="STABLE needs STATE from below: put XFER below it"):
        parse_stack("PACK:STABLE:TOTAL:MBRSHIP:COM:sim")


# The arithmetic.


def member(rank: int) -> Member:
    return Member(f"sim:{rank}", 100 + rank, rank)


def test_levels() -> None:
    """4.4: "not only full, but also partial stability" (H68)."""
    three = tuple(map(member, range(3)))
    stability = Stability(three, ((5, 2, 5), (0, 0, 0), (7, 9, 8)))
    assert stability.level(1) == (5, 0, 9)
    assert stability.level(2) == (5, 0, 8)
    assert stability.level(3) == (2, 0, 7)
    assert stability.level(4) == (0, 0, 0)
    with pytest.raises(ValueError, match="k=0"):
        stability.level(0)
    with pytest.raises(AttributeError):
        stability.members = ()  # type: ignore[misc]


def test_reached() -> None:
    view = View(1, 1, 0, tuple(map(member, range(3))))
    matrix = Matrix()
    matrix.restore(7, {100: 3, 101: 4})
    matrix.install(view)
    assert matrix.stability().matrix == ((0, 0, 0), (0, 0, 0), (0, 0, 0))
    assert [matrix.reached(k) for k in (0, 1, 2, 3, 4)] == [0, 0, 0, 0, 0]
    matrix.install(replaced(view, members=view.members[:1]))
    assert matrix.stability().members == view.members[:1]
    with pytest.raises(ValueError, match="STABLE needs a window"):
        Matrix(0)


def test_levels_fall_with_k() -> None:
    rng = Random(0)
    four = tuple(map(member, range(4)))
    rows = tuple(tuple(rng.randrange(9) for _ in four) for _ in four)
    levels = [Stability(four, rows).level(k) for k in range(1, 5)]
    for more, fewer in pairwise(levels):
        assert all(a >= b for a, b in zip(more, fewer, strict=True))
