"""Groups in the simulator whose members ack when they like, over STABLE, beside a model (H66 to H69).

The model knows the order and what each member has acked when. At each step a member's matrix must
show, column by column, what was true of that member at some time, and never go back; of itself it
knows the truth. When nothing is under way any more all matrices are the truth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.sim import Delays, World
from orcalike.transport.layers.base import Core, Layer
from orcalike.transport.layers.stable import Matrix, Stable
from orcalike.transport.stability import Stability
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message
from tests.lib import orders

MS = 1_000_000
REST = 5_000 * MS
"""All that a run begins is over by then: what it draws is within 160 ms, and D is 500 ms."""
SMALL = {"TOTAL": "TOTAL(packets=16)", "RING": "RING(slots=16,lane=131072)"}
"""By order: one that is full soon."""


class Truth:
    """The order, and what each member has acked: all seqnos that were its level, in turn."""

    def __init__(self) -> None:
        self.order: dict[int, tuple[int, int]] = {}
        """By seqno: whose the packet is, and how many messages are in it."""
        self.levels: dict[int, list[int]] = {}

    def delivered(self, seqno: int, sender: int, index: int) -> None:
        _, messages = self.order.get(seqno, (sender, 0))
        self.order[seqno] = (sender, max(messages, index + 1))

    def counts(self, places: Iterable[int], senders: list[int]) -> Iterator[list[int]]:
        """At each of these places in the order, which rise: how many messages of each there are so far."""
        found = dict.fromkeys(senders, 0)
        seqnos = deque(sorted(self.order))
        for upto in places:
            while seqnos and seqnos[0] <= upto:
                sender, messages = self.order[seqnos.popleft()]
                if sender in found:
                    found[sender] += messages
            yield list(found.values())


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
        if view.position(self.me) >= 0:
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
            places = [min(level, newest) for level in levels]
            assert column in self.truth.counts(places, senders), f"{member} at {self.me}"
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
        specs = parse_stack(f"{pack}STABLE{window}:XFER:{SMALL[orders.usual]}:MBRSHIP:COM:sim")
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
        self.world.run(lambda: self.world.now > REST)
        for number in range(len(self.nodes)):
            self.ack(number, everything=True)
        self.world.run(lambda: self.world.now > 2 * REST)

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
            (truth,) = self.truth.counts([newest], senders)
            assert [list(row) for row in now.matrix] == [[count] * len(senders) for count in truth]
            assert layer.matrix.reached(len(senders)) == layer.matrix.reached(1)


def run(seed: int) -> None:
    """One group, to its end. Raises AssertionError for what is wrong."""
    one = Run(seed)
    one.run()
    one.check_the_end()
