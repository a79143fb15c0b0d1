"""The simulator: any number of stacks in one process, on a virtual clock, from one seed.

It drives the same compiled stacks that run in production (RELIABILITY, section 5). A link is a
FIFO channel with a delay of its own for each frame. All that happens is an event on one heap,
ordered by time and by a tie that is drawn from the seed; so a seed is a schedule, and the same
seed gives the same trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

from orcalike.transport.stack import Stack


@dataclass(frozen=True, slots=True)
class Delays:
    """How long a frame travels: a minimum, and an exponential tail; ns."""

    least: int = 10_000
    mean: int = 50_000
    connect: int = 100_000


class Node:
    """One simulated process: a stack, its address, and its links by number."""

    def __init__(self, world: World, name: str, stack: Stack) -> None:
        self.world = world
        self.name = name
        self.address = f"sim:{name}"
        self.stack = stack
        self.alive = True
        self.links: list[tuple[Node, int] | None] = []
        self._arrivals: dict[int, int] = {}
        self._alarm: int | None = None
        self._kicked = False

    def call(self, input_: Callable[[int], None]) -> None:
        """Give the stack one input now, and move what comes out of it."""
        if self.alive:
            input_(self.world.now)
            self.drain()

    def kick(self) -> None:
        """The application has put something into PACK: cast it, when this event is over."""
        if not self._kicked:
            self._kicked = True
            self.world.at(self.world.now, self._flush_packets)

    def _flush_packets(self) -> None:
        self._kicked = False
        self.call(self.stack.flush_packets)

    def drain(self) -> None:
        """Move what the stack put out, and set its next alarm."""
        for link, frame in self.stack.out.take():
            self._transmit(link, frame)
        for address in self.stack.out.take_connects():
            self.world.connect(self, address)
        for link in self.stack.out.take_closes():
            self.world.disconnect(self, link, "closed")
        deadline = self.stack.deadline
        if deadline is not None and (self._alarm is None or deadline < self._alarm):
            self._alarm = deadline
            self.world.at(max(deadline, self.world.now), self._expire)

    def _expire(self) -> None:
        self._alarm = None
        deadline = self.stack.deadline
        if self.alive and deadline is not None and deadline <= self.world.now:
            for member in self.stack.beats:
                peer = self.world.nodes.get(member.address)
                if peer is not None and peer.alive:
                    self.stack.heard(member.incarnation, self.world.now)
            self.call(self.stack.expire)
        elif self.alive:
            self.drain()

    def _transmit(self, link: int, frame: bytes) -> None:
        end = self.links[link] if link < len(self.links) else None
        if end is None:
            return
        peer, peer_link = end
        arrival = max(self.world.now + self.world.delay(), self._arrivals.get(link, 0) + 1)
        self._arrivals[link] = arrival
        self.world.at(arrival, lambda: peer.arrive(peer_link, frame))

    def arrive(self, link: int, frame: bytes) -> None:
        """A frame has come."""
        if self.alive and self.links[link] is not None:
            self.world.note(self.name, frame)
            self.call(lambda now: self.stack.receive(link, frame, now))


class World:
    """The virtual clock, the network, and the trace of all that arrived."""

    def __init__(self, seed: int, delays: Delays | None = None) -> None:
        self.seed = seed
        self.now = 0
        self.events = 0
        self.nodes: dict[str, Node] = {}
        self._delays = delays or Delays()
        self._ties = Random(f"{seed} ties")
        self._network = Random(f"{seed} network")
        self._heap: list[tuple[int, float, int, Callable[[], None]]] = []
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace(self) -> str:
        """A digest over every frame that arrived, where, when, and in which order."""
        return self._trace.hexdigest()

    def note(self, name: str, data: bytes) -> None:
        """Add to the trace."""
        self._trace.update(f"{self.now} {name} {len(data)} ".encode() + data)

    def add(self, name: str, stack: Stack) -> Node:
        """A new process with this stack; its address is `sim:NAME`."""
        node = self.nodes[f"sim:{name}"] = Node(self, name, stack)
        return node

    def at(self, when: int, event: Callable[[], None]) -> None:
        """Have `event` happen at the time `when`."""
        heappush(self._heap, (when, self._ties.random(), len(self._heap), event))

    def delay(self) -> int:
        """How long the next frame travels."""
        tail = self._network.expovariate(1 / self._delays.mean)
        return self._delays.least + int(tail)

    def connect(self, node: Node, address: str) -> None:
        """Make a link between `node` and the process at `address`."""

        def connected() -> None:
            peer = self.nodes.get(address)
            if peer is None or not peer.alive:
                why = "nobody is there"
                node.call(lambda now: node.stack.connect_failed(address, why, now))
                return
            here, there = len(node.links), len(peer.links)
            node.links.append((peer, there))
            peer.links.append((node, here))
            peer.call(lambda now: peer.stack.link_up(there, "", now))
            node.call(lambda now: node.stack.link_up(here, address, now))

        self.at(self.now + self._delays.connect + self.delay(), connected)

    def disconnect(self, node: Node, link: int, why: str) -> None:
        """Take a link down at both ends; the far end learns of it after what is under way."""
        end = node.links[link] if link < len(node.links) else None
        if end is None:
            return
        node.links[link] = None
        peer, peer_link = end
        node.call(lambda now: node.stack.link_down(link, why, now))
        arrival = max(self.now + self.delay(), node._arrivals.get(link, 0) + 1)

        def down() -> None:
            if peer.links[peer_link] is not None:
                peer.links[peer_link] = None
                peer.call(lambda now: peer.stack.link_down(peer_link, why, now))

        self.at(arrival, down)

    def stop(self, node: Node, why: str = "the process ended") -> None:
        """End a process: its links go down, what it sent before still arrives."""
        for link in range(len(node.links)):
            self.disconnect(node, link, why)
        node.alive = False

    def step(self) -> bool:
        """Let the next event happen; False where nothing is left."""
        if not self._heap:
            return False
        when, _, _, event = heappop(self._heap)
        self.now = max(self.now, when)
        self.events += 1
        event()
        return True

    def run(self, until: Callable[[], bool] | None = None, events: int = 1_000_000) -> bool:
        """Step until the condition holds, or nothing is left, or `events` have happened."""
        for _ in range(events):
            if until is not None and until():
                return True
            if not self.step():
                break
        return until is None or until()
