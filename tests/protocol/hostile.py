"""Hostile frames of a grammar, by non-members and by members, at one member's stack.

The grammar makes greetings, control messages and the headers of every layer, and lies in their
lengths, counts, views, places and values; now and then it changes bytes besides. A non-member's
frame must change nothing (the state is compared); of a member's nothing may come but that its link
is closed or that it is complained of. No exception leaves the stack, and what it keeps is bounded.

    python -m tests.protocol.hostile --frames 100000 --seed 1
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import msgpack

from orcalike.bench.subjects import Shared
from orcalike.runtime.assemble import make_runtime
from orcalike.runtime.dispatch import Runtime
from orcalike.runtime.errors import GroupClosed
from orcalike.session.group_calls import Share
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.simdriver import SimDriver
from orcalike.transport.layers.com import WIRE_VERSION
from orcalike.transport.membership import early
from orcalike.transport.membership.attribution import BELIEVED
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.total.flush import Cut, Piece, Report
from orcalike.transport.view import Member, View, resets_of

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

STACK = "PACK:XFER:TOTAL:MBRSHIP:COM:sim"
CONTROL = 1 << 63
NUMBERS = (0, 1, 2, 3, 4, 7, 255, 1023, 1 << 16, (1 << 24) - 1, (1 << 31), (1 << 32) - 1, 1 << 62,
           (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
FRAMES_OF_ONE = 24
"""Frames that one stack gets of a lying member, at the most."""


class Events:
    """What a runtime tells: kept, as far as it is a complaint."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.view: View | None = None

    def viewed(self, view: View) -> None:
        """A view was installed."""
        self.view = view

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words: self.complaints.append(f"{name}: {words}")


class Node:
    """One member with a runtime; it keeps the inputs that it gets."""

    def __init__(self, number: int, now: int) -> None:
        me = Member(f"sim:{number}", number + 1)
        self.world, self.now = self, now
        config = StackConfig("group", epoch=10**18)
        self.stack = Stack(parse_stack(STACK), config, me, number + 1)
        self.events = Events()
        self.runtime: Runtime = make_runtime(
            self.stack, me.incarnation, self.events, time=lambda: now
        )
        self.runtime.sender.driver = SimDriver(self)  # type: ignore[arg-type]  # it asks for no more
        self.stack.above = self.runtime
        self.links: list[tuple[Node, int]] = []
        self.inputs: list[tuple[str, tuple[Any, ...]]] = []
        self.kicked = False

    def end(self) -> None:
        """Nothing more comes to it: it can be freed."""
        self.runtime.let_go(GroupClosed("the attack is over"))

    def kick(self) -> None:
        """There is something in PACK."""
        self.kicked = True

    def call(self, input_: Callable[[int], None]) -> None:
        """One input of the stack."""
        input_(self.now)

    def put(self, name: str, *arguments: Any) -> None:
        """An input, which is kept."""
        self.inputs.append((name, arguments))
        getattr(self.stack, name)(*arguments, self.now)


class Scene:
    """A group of three, formed once: how its first member came to its state can be repeated."""

    def __init__(self) -> None:
        self.now = 10**9
        self.nodes = [Node(number, self.now) for number in range(3)]
        for node in self.nodes:
            node.put("join", "sim:0" if node is not self.nodes[0] else "")
            self.move()
        shared = Share(self.nodes[1].runtime).nowait(Shared, "shared")
        self.move()
        for _ in range(3):
            shared.result().add.nowait(1)
            self.move()
        view = self.nodes[0].events.view
        assert view is not None
        self.view = view
        self.of_b = next(i for i, far in enumerate(self.nodes[0].links) if far[0] is self.nodes[1])

    def move(self) -> None:
        """Let all arrive."""
        moved = True
        while moved:
            moved = False
            for node in self.nodes:
                if node.kicked:
                    node.kicked = False
                    node.put("flush_packets")
                out = node.stack.out
                for link, frame in out.take():
                    peer, number = node.links[link]
                    peer.put("receive", number, frame)
                    moved = True
                for address in out.take_connects():
                    peer = self.nodes[int(address.removeprefix("sim:"))]
                    here, there = len(node.links), len(peer.links)
                    node.links.append((peer, there))
                    peer.links.append((node, here))
                    peer.put("link_up", there, "")
                    node.put("link_up", here, address)
                    moved = True

    def fresh(self) -> Node:
        """The first member once more, as it stands in the group."""
        node = Node(0, self.now)
        for name, arguments in self.nodes[0].inputs:
            getattr(node.stack, name)(*arguments, self.now)
        clear(node.stack)
        assert node.events.view is not None
        return node


def clear(stack: Stack) -> list[int]:
    """Empty the outbox; returns the links that are to be closed."""
    assert len(stack.out.take()) < 1000
    stack.out.take_connects()
    return stack.out.take_closes()


def state_of(stack: Stack) -> object:
    """All that a member knows, but for its links and what it has counted as dropped."""
    layers = stack.dump()
    layers.pop("COM")
    return [{k: v for k, v in facts.items() if k not in ("stale", "early")}
            for facts in layers.values()]  # fmt: skip


class Rng(Random):
    """Draws by multiplication: nearly uniform, and three times as fast."""

    def choice(self, seq: SupportsLenAndGetItem[Any]) -> Any:
        return seq[int(self.random() * len(seq))]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert step == 1
        if stop is None:
            return int(self.random() * start)
        return start + int(self.random() * (stop - start))


class Grammar:
    """Draws frames."""

    def __init__(self, rng: Random, view: View) -> None:
        self.rng = rng
        self.view = view
        self.key = resets_of(view.lineage) << 56 | view.number << 24 | view.mark
        self.counter = 5
        self.seqno = 5

    # Values.

    def number(self) -> int:
        """An integer of any size, mostly a telling one."""
        return self.rng.choice(NUMBERS) if self.rng.random() < 0.8 else self.rng.getrandbits(64)

    def near(self, true: int) -> int:
        """The right number, or one beside it, or any."""
        return self.rng.choice((true, true, true, true + 1, max(true - 1, 0), self.number()))

    def value(self, depth: int = 0) -> Any:
        """Anything that msgpack can carry."""
        rng = self.rng
        match rng.randrange(12 if depth < 5 else 8):
            case 0:
                return None
            case 1:
                return rng.random() < 0.5
            case 2 | 3:
                return rng.choice((self.number(), -self.number() // 2 - 1, 0.5))
            case 4 | 5:
                return rng.randbytes(rng.choice((0, 1, 8, 40)))
            case 6:
                return rng.choice(("", "x", "sim:0", "sim:x", "JOIN", "\x1b[2J", "\udcff", "é" * 9))
            case 7:
                return msgpack.ExtType(rng.randrange(128), rng.randbytes(rng.randrange(9)))
            case 8 | 9 | 10:
                return [self.value(depth + 1) for _ in range(rng.randrange(5))]
            case _:
                return {self.name(): self.value(depth + 1) for _ in range(rng.randrange(4))}

    def name(self) -> Any:
        """A key."""
        return self.rng.choice(("resilience", "stack", "x", "", b"", "y" * 300))

    def maybe(self, true: Any) -> Any:
        """The right value, mostly."""
        return true if self.rng.random() < 0.9 else self.value()

    def member(self) -> Any:
        """A member of the view, or one made up, or something else."""
        rng = self.rng
        if rng.random() < 0.6:
            return self.maybe(rng.choice(self.view.members).pack())
        rank = rng.choice((None, 0, 1, 2, 7, 1023, self.number()))
        return [self.maybe(rng.choice(("sim:x", "sim:0", "", "link:3:4", "x" * 400))),
                self.maybe(self.near(self.number())), self.maybe(rank), self.maybe(rng.random() < 0.2)]  # fmt: skip

    def a_view(self) -> Any:
        """The next view, with lies in it."""
        rng = self.rng
        members = [member.pack() for member in self.view.members if rng.random() < 0.9]
        members += [self.member() for _ in range(rng.choice((0, 0, 0, 1, 2, 40)))]
        if rng.random() < 0.1:
            members = members[::-1]
        lineage = self.near(self.view.lineage)
        return self.maybe([lineage, self.near(self.view.number + 1), self.near(self.ballot()),
                           members, self.maybe(True), self.identity()])  # fmt: skip

    def identity(self) -> Any:
        """Of the view, mostly."""
        return self.maybe([self.near(part) for part in self.view.identity])

    def ballot(self) -> int:
        """One of the lying member's, mostly."""
        return self.rng.choice((1, 2, 3, 9, self.number())) << 10 | self.rng.choice((0, 1, 2, 5))

    def packed(self, make: Callable[[], bytes]) -> bytes:
        """What TOTAL makes, or other bytes."""
        try:
            return make() if self.rng.random() < 0.85 else self.garbled(make())
        except (OverflowError, ValueError):
            return b"\xc1"

    def report(self) -> bytes:
        """What a member says that it holds."""
        return self.packed(lambda: Report(self.near(self.seqno), self.near(self.seqno)).pack())

    def cut(self) -> bytes:
        """What belongs to the view that is to end."""
        counters = {member.incarnation: self.near(self.counter) for member in self.view.members}
        senders = tuple(self.view.members[: self.rng.randrange(3)])
        last, mark, stamp = self.near(self.seqno), self.near(self.seqno), self.number()
        return self.packed(lambda: Cut(last, mark, stamp, counters, senders).pack())

    def piece(self) -> bytes:
        """A packet that is missing, perhaps."""
        sender = self.rng.choice((1, 2, 3, 9))
        numbers = self.near(self.seqno), sender, self.near(self.counter)
        degree, stamp, body = self.rng.choice((0, 1, 254, 999)), self.number(), self.body()
        return self.packed(lambda: Piece(*numbers, degree, stamp, body).pack())

    # Messages.

    def control(self) -> bytes:
        """A control message."""
        rng = self.rng
        kind = rng.choice((*BELIEVED, "NONSENSE"))
        message = [kind, *map(self.maybe, self.fields(kind))]
        if rng.random() < 0.05:
            message.insert(rng.randrange(len(message) + 1), self.value())
        return self.raw(message)

    def fields(self, kind: str) -> list[Any]:
        """What a control message of that kind says."""
        rng = self.rng
        match kind:
            case "JOIN":
                options = {self.name(): self.maybe(rng.choice((None, 0, 1, "x"))) for _ in "12"}
                return [self.member(), options, *([self.near(1)] if rng.random() < 0.3 else [])]
            case "NOWHERE":
                return [self.near(1), self.near(3), self.member(), {}]
            case "TAKEN":
                return [self.near(1), self.member()]
            case "INSIDE":
                return [self.near(1)]
            case "BEHIND":
                return [self.identity(), self.report()]
            case "DENIED":
                return ["no" * rng.randrange(2000)]
            case "INSTALL":
                return [self.a_view(), self.cut()]
            case "EXPELLED":
                return [self.a_view(), self.near(1), "why" * rng.randrange(2000)]
            case "SHIP":
                return [*([self.identity()] if rng.random() < 0.5 else []), self.piece()]
            case "RESET":
                return [self.near(1)]
            case "RESET_FAILED":
                return ["why"]
            case "FLUSH":
                return [self.ballot(), self.report(), self.dead()]
            case "FLUSH_OK":
                accepted = rng.choice((None, [self.ballot(), self.a_view(), self.cut()]))
                return [self.ballot(), self.report(), accepted, self.dead(),
                        rng.choice((0, 1, 2, 3)), self.maybe(True), self.near(1),
                        rng.random() < 0.5]  # fmt: skip
            case "PROPOSE":
                return [self.ballot(), self.a_view(), self.cut()]
            case "PROMISED" | "ACCEPT" | "CHOSEN":
                return [self.ballot()]
            case "BLOCKED":
                return [self.dead(), "rule"]
            case "LOST":
                return [self.near(2)]
            case _:
                return []

    def dead(self) -> list[Any]:
        """Incarnations that are said to be dead."""
        return [self.maybe(self.rng.choice((1, 2, 3, 9))) for _ in range(self.rng.randrange(3))]

    def raw(self, message: Any) -> bytes:
        """As bytes; sometimes with lies in counts and lengths, or nested without end."""
        rng = self.rng
        chance = rng.random()
        if chance < 0.02:
            return b"\x91" * rng.choice((7, 8, 9, 500, 1100)) + b"\x90"
        if chance < 0.04:
            head = rng.choice((b"\xdc\xff\xff", b"\xdd\x7f\xff\xff\xff", b"\xdf\xff\xff\xff\xff",
                                b"\xc6\xff\xff\xff\xff", b"\xdb\x00\xff\xff\xff"))  # fmt: skip
            return head + rng.randbytes(rng.randrange(40))
        try:
            data: bytes = msgpack.packb(message, unicode_errors="surrogatepass")
        except (ValueError, OverflowError):
            return rng.randbytes(20)
        return self.garbled(data) if rng.random() < 0.05 else data

    def garbled(self, data: bytes) -> bytes:
        """With a fault in it."""
        changed, rng = bytearray(data), self.rng
        where = rng.randint(0, len(changed))
        match rng.randrange(4):
            case 0:
                changed[where : where + 1] = rng.randbytes(1)
            case 1:
                del changed[where:]
            case 2:
                changed[where:where] = rng.randbytes(rng.randint(1, 8))
            case _:
                changed[where : where + 8] = self.number().to_bytes(8, "little")
        return bytes(changed)

    def body(self) -> bytes:
        """What XFER, PACK and the runtime get: an invocation in a packet."""
        rng = self.rng
        invocations = []
        for _ in range(rng.choice((1, 1, 2, 5))):
            target = varint(rng.choice((0, 0, 1, 1, 2, 9, self.number() % (1 << 32))))
            code = varint(rng.choice((*range(24), self.number() % (1 << 32))))
            values = b"".join(self.raw(self.value()) for _ in range(rng.randrange(4)))
            invocation = target + code + values
            invocations.append(varint(self.near(len(invocation)) % (1 << 35)) + invocation)
        packet = le(self.near(1), 8) + le(self.near(len(invocations)), 4)
        kind = bytes([rng.choice((0, 0, 0, 0, 1, 2, 255))])
        return kind + packet + b"".join(invocations)

    def data(self) -> bytes:
        """A message of TOTAL, or of what is above it."""
        rng = self.rng
        kind = rng.choice((1, 1, 1, 2, 3, 4, 5, 5, 6, 0))
        if kind == 5:  # XFER's, to one member
            head = bytes([rng.choice((2, 3, 4, 5, 9))]) + le(self.near(self.view.number), 4)
            return b"\5" + head + le(self.near(0), 4) + rng.choice((self.body(), self.control()))
        head = bytes([kind, rng.choice((0, 0, 1, 2, 253, 254, 255))])
        head += le(rng.choice((0, 1, 2, 9, 0xFFFF)), 2) + le(self.near(1), 4)
        head += le(self.near(self.counter), 8) + le(self.near(self.seqno), 8)
        if kind == 1 and rng.random() < 0.7:
            self.counter += 1
        return head + le(self.near(self.seqno), 8) + le(self.near(1), 8) + self.body()

    def frame(self, *, member: bool) -> bytes:
        """A whole frame."""
        rng = self.rng
        controls = rng.random() < 0.5
        key = self.near(self.key)
        if controls:
            key = CONTROL if rng.random() < (0.2 if member else 0.7) else key % CONTROL | CONTROL
        body = le(key, 8) + (self.control() if controls else self.data())
        kind = rng.choice((2, 3, 3, 3, 4)) if member else rng.choice((2, 3, 4, 4, 4))
        if rng.random() < 0.01:
            kind = rng.randrange(256)
        head = bytes([0x4F, WIRE_VERSION, kind, 0])
        frame = (len(body) + 4).to_bytes(4, "little") + head + body
        return self.garbled(frame) if rng.random() < 0.03 else frame

    def greeting(self) -> bytes:
        """A greeting, right in most of its parts."""
        rng = self.rng
        fields = [self.maybe("group"), self.maybe(rng.choice(("sim:x", "", "sim:9"))),
                  self.maybe(1000 + rng.randrange(5))]  # fmt: skip
        body = self.raw(fields if rng.random() < 0.95 else self.value())
        frame = (len(body) + 4).to_bytes(4, "little") + bytes([0x4F, WIRE_VERSION, 1, 0]) + body
        return self.garbled(frame) if rng.random() < 0.05 else frame


def varint(number: int) -> bytes:
    """As the runtime and PACK write numbers."""
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def le(number: int, size: int) -> bytes:
    """The lowest bytes of a number."""
    return (number & (1 << 8 * size) - 1).to_bytes(size, "little")


@dataclass
class Tally:
    """What came of so many frames."""

    non_members: int = 0
    members: int = 0
    refused: int = 0
    delivered: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """All of them."""
        return self.non_members + self.members


def by_non_members(scene: Scene, rng: Random, frames: int, tally: Tally) -> None:
    """Frames by links of endpoints that are in no view, at one member, whose state is compared."""
    node = scene.fresh()
    stack = node.stack
    before, link = state_of(stack), -1
    for number in range(frames):
        grammar = Grammar(rng, scene.view)
        if link < 0:
            link = len(scene.nodes[0].links) + rng.randrange(4)
            stack.link_up(link, "", scene.now)
            stack.receive(link, grammar.greeting(), scene.now)
            peer = stack.bottom.peer_at(link)
            if peer is not None and scene.view.position(peer.incarnation or 0) >= 0:
                # A claim to be a member is believed: that is what a key is for.
                node.end()
                node = scene.fresh()
                stack, link = node.stack, -1
                before = state_of(stack)
                continue
        else:
            stack.receive(link, grammar.frame(member=False), scene.now)
        tally.non_members += 1
        if link in clear(stack) or rng.random() < 0.02:
            tally.refused += 1
            stack.link_down(link, "closed", scene.now)
            clear(stack)
            link = -1
        if number % 64 == 63 or number == frames - 1:
            assert state_of(stack) == before, "a non-member has changed the state"
            kept = stack.dump()["MBRSHIP"]["early"]
            assert isinstance(kept, int)
            assert kept <= early.OTHERS_BYTES_MAX
            assert not node.events.complaints
    node.end()


def by_a_member(scene: Scene, rng: Random, tally: Tally) -> None:
    """Frames by the link of a member, until that is closed; then what follows from its end."""
    node = scene.fresh()
    stack, link = node.stack, scene.of_b
    grammar = Grammar(rng, scene.view)
    for _ in range(FRAMES_OF_ONE):
        stack.receive(link, grammar.frame(member=True), scene.now)
        tally.members += 1
        if node.kicked:
            node.kicked = False
            stack.flush_packets(scene.now)
        if link in clear(stack) or node.events.view is None:
            tally.refused += 1
            break
    stack.link_down(link, "closed", scene.now)
    clear(stack)
    for seconds in (1, 2, 6):
        stack.expire(scene.now + seconds * 10**9)
        clear(stack)
    tally.delivered += bool(node.events.complaints)
    node.end()


def attack(frames: int, seed: int) -> Tally:
    """So many frames, most by non-members, from one seed on; raises what the stack raises."""
    scene, tally = Scene(), Tally()
    while tally.frames < frames:
        rng = Rng(seed)
        try:
            by_non_members(scene, rng, 800, tally)
            until = tally.frames + 200
            while tally.frames < until:
                by_a_member(scene, rng, tally)
        except Exception as error:
            error.add_note(f"python -m tests.protocol.hostile --frames 1 --seed {seed}")
            raise
        seed += 1
    return tally


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests.protocol.hostile", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.process_time()
    tally = attack(options.frames, options.seed)
    seconds = time.process_time() - start
    print(f"{tally.frames} frames ({tally.members} by members), {tally.refused} links closed, "
          f"{seconds:.0f} s of processor time: nothing broke")  # fmt: skip


if __name__ == "__main__":
    main()
