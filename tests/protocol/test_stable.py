"""STABLE against a model: groups in the simulator whose members ack when they like (H66 to H69).

The model knows the order and what each member has acked when. At each step a member's matrix must
show, column by column, what was true of that member at some time, and never go back; of itself it
knows the truth. When nothing is under way any more all matrices are the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise, permutations
from random import Random

import pytest

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.sim import Delays, World
from orcalike.transport.errors import ProtocolError, StackError
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.stable import Matrix, Stable
from orcalike.transport.stability import Stability
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message
from tests.lib import manual_network
from tests.lib.manual_network import ManualNetwork

MS = 1_000_000
MINUTE = 60_000 * MS


class Truth:
    """The order, and what each member has acked: all seqnos that were its level, in turn."""

    def __init__(self) -> None:
        self.order: dict[int, tuple[int, int]] = {}
        """By seqno: whose the packet is, and how many messages are in it."""
        self.levels: dict[int, list[int]] = {}

    def delivered(self, seqno: int, sender: int, index: int) -> None:
        _, messages = self.order.get(seqno, (sender, 0))
        self.order[seqno] = (sender, max(messages, index + 1))

    def counts(self, upto: int, senders: list[int]) -> list[int]:
        """How many messages of each there are up to a place in the order."""
        found = dict.fromkeys(senders, 0)
        for seqno, (sender, messages) in self.order.items():
            if seqno <= upto and sender in found:
                found[sender] += messages
        return [found[sender] for sender in senders]


class User(Layer):
    """What stands on top: it keeps what is delivered, acks some of it, and checks the matrix."""

    def __init__(self, core: Core, truth: Truth, *, exact: bool) -> None:
        super().__init__(core)
        self.me = core.me.incarnation
        self.truth = truth
        self.exact = exact
        """The layer remembers more than there is, so a member knows its own column."""
        self.installed: View | None = None
        self.messages: list[Message] = []
        self.acked = 0
        self.begins = 0
        """The place in the order that its state stands for."""
        self.matrices: list[Stability] = []
        self.errors: list[str] = []
        self.gone = False

    def up_view(self, view: View, cut: bytes) -> None:
        if self.installed is None:
            self.acked = self.begins
            self.truth.levels[self.me] = [0, self.begins]
        if view.place(self.me) >= 0:
            self.installed = view

    def up_cast(self, message: Message) -> None:
        assert self.installed is not None
        sender = self.installed.members[message.source].incarnation
        self.truth.delivered(message.seqno, sender, message.index)
        self.messages.append(message.copy())

    def see(self, seqno: int) -> None:
        """Ack the newest message with a place up to that."""
        mine = [message for message in self.messages if message.seqno <= seqno]
        if mine and mine[-1].seqno > self.acked:
            self.acked = mine[-1].seqno
            self.truth.levels[self.me].append(self.acked)
            self.below.ack(mine[-1])

    def up_stable(self, matrix: object) -> None:
        assert isinstance(matrix, Matrix)
        self.look(matrix.stability())

    def look(self, now: Stability) -> None:
        """The matrix as it is now: true of some time, newer than what was shown before."""
        assert self.installed is not None
        assert now.members == self.installed.replicas
        senders = [member.incarnation for member in now.members]
        newest = max([self.begins, *(message.seqno for message in self.messages)])
        for place, member in enumerate(senders):
            column = [row[place] for row in now.matrix]
            levels = self.truth.levels.get(member, [0])
            if member == self.me and self.exact:
                levels = [self.acked]
            assert column in [self.truth.counts(min(level, newest), senders) for level in levels], (
                f"{member} at {self.me}"
            )
        if self.matrices and self.matrices[-1].members == now.members:
            for before, after in zip(self.matrices[-1].matrix, now.matrix, strict=True):
                assert all(b <= a for b, a in zip(before, after, strict=True))
        self.matrices.append(now)

    def up_give_state(self) -> Iterator[bytes]:
        newest = max([self.begins, *(message.seqno for message in self.messages)])
        return iter([newest.to_bytes(8, "little")])

    def up_take_state(self, piece: bytes) -> None:
        self.begins = int.from_bytes(piece, "little")

    def up_exit(self, why: str) -> None:
        self.gone = True

    def up_problem(self, member: object, why: str) -> None:
        self.errors.append(f"{member}: {why}")

    def up_system_error(self, why: str) -> None:
        self.errors.append(why)


class Run:
    """A group that forms, casts, acks, and loses members, all of it from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"{seed} stability")
        rng = self.rng
        delays = Delays(rng.choice([1_000, 50_000]), rng.choice([1_000, 200_000]))
        self.world = World(seed, delays)
        self.truth = Truth()
        self.span = rng.choice([2, 10, 40]) * MS
        self.users: list[User] = []
        self.nodes = []
        pack = rng.choice(["PACK:", "PACK(size=64):", ""])
        window = rng.choice(["", "", "(window=3)"])
        specs = parse_stack(f"{pack}STABLE{window}:XFER:TOTAL(packets=16):MBRSHIP:COM:sim")
        self.witness = rng.random() < 0.3
        for number in range(rng.choice([2, 3, 4, 6])):
            incarnation = rng.getrandbits(64)
            me = Member(f"sim:{number}", incarnation, witness=self.witness and number == 0)
            stack = Stack(specs, StackConfig("group"), me, rng.getrandbits(64))
            user = User(stack, self.truth, exact=not window)
            stack.above = user
            self.users.append(user)
            self.nodes.append(self.world.add(str(number), stack))

    def at_some_time(self, event: Callable[[], None], begin: int, end: int) -> None:
        self.world.at(self.rng.randint(begin, end), event)

    def run(self) -> None:
        first = self.nodes[0]
        first.call(lambda now: first.stack.join("", now))
        for number in range(1, len(self.nodes)):
            self.at_some_time(partial(self.join, number), 1, self.span)
        for _ in range(self.rng.choice([5, 40, 150])):
            number = self.rng.randrange(len(self.nodes))
            self.at_some_time(partial(self.cast, number), 0, 3 * self.span)
            self.at_some_time(partial(self.ack, number), 0, 4 * self.span)
        leavers = [n for n in range(1, len(self.nodes)) if self.rng.random() < 0.3]
        for number in leavers[: len(self.nodes) - 2 - self.witness]:
            self.at_some_time(partial(self.leave, number), self.span, 4 * self.span)
        self.world.run(lambda: self.world.now > MINUTE)
        for number in range(len(self.nodes)):
            self.ack(number, everything=True)
        self.world.run(lambda: self.world.now > 2 * MINUTE)

    def inside(self, number: int) -> bool:
        user = self.users[number]
        return user.installed is not None and not user.gone and not user.core.me.witness

    def join(self, number: int) -> None:
        node = self.nodes[number]
        node.call(lambda now: node.stack.join("sim:0", now))

    def cast(self, number: int) -> None:
        node = self.nodes[number]
        if self.inside(number):
            for _ in range(self.rng.choice([1, 1, 7])):
                body = self.rng.randbytes(self.rng.choice([0, 5, 40]))
                node.call(partial(node.stack.cast, Message(body)))

    def ack(self, number: int, *, everything: bool = False) -> None:
        user, node = self.users[number], self.nodes[number]
        if self.inside(number) and user.messages:
            message = user.messages[-1] if everything else self.rng.choice(user.messages)
            user.see(message.seqno)
            node.call(node.stack.expire)

    def leave(self, number: int) -> None:
        if self.inside(number):
            self.users[number].gone = True
            self.nodes[number].call(self.nodes[number].stack.leave)

    def check_the_end(self) -> None:
        live = [number for number in range(len(self.nodes)) if self.inside(number)]
        assert live
        for number in live:
            user, stack = self.users[number], self.nodes[number].stack
            assert user.errors == []
            layer = stack.focus("STABLE")
            assert isinstance(layer, Stable)
            assert layer.dump()["remembered"] == 0
            now = layer.matrix.stability()
            user.look(now)
            senders = [member.incarnation for member in now.members]
            newest = max([0, *self.truth.order])
            truth = self.truth.counts(newest, senders)
            assert [list(row) for row in now.matrix] == [[count] * len(senders) for count in truth]
            assert layer.matrix.reached(len(senders)) == layer.matrix.reached(1)


@pytest.mark.parametrize("block", range(8))
def test_the_matrix_is_right_at_each_step(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        try:
            run = Run(seed)
            run.run()
            run.check_the_end()
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
    matrix.install(replace(view, members=view.members[:1]))
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
