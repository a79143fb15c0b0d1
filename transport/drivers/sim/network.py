"""The simulated network: ways between two addresses, and the ends of links.

A *path* is the way from one address to another, in one direction: how long it takes, and what is
wrong with it. A *link* is two ends, one at each process; what one end sends is under way to the
other until it arrives, is lost because the link breaks, or waits because the path is cut.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orcalike.transport.drivers.sim.streams import Stream

if TYPE_CHECKING:
    from orcalike.transport.drivers.sim.node import Node
    from orcalike.transport.drivers.sim.world import World


@dataclass(frozen=True, slots=True)
class Delays:
    """How long things travel, in ns: a minimum, an exponential tail, and now and then much longer."""

    least: int = 10_000
    mean: int = 50_000
    connect: int = 100_000
    heavy: int = 0
    """What one frame in 1,024 takes on top."""
    timeout: int = 200_000_000
    """After so long an attempt to connect over a cut path is given up, or at once: by the seed."""


class Spans:
    """When something was wrong: since when it is, and from when to when it was."""

    __slots__ = ("past", "since")

    def __init__(self) -> None:
        self.since: int | None = None
        self.past: list[tuple[int, int]] = []

    def begin(self, now: int) -> None:
        """It is wrong from now on."""
        if self.since is None:
            self.since = now

    def end(self, now: int) -> None:
        """It is right again."""
        if self.since is not None:
            self.past.append((self.since, now))
            self.since = None

    def before(self, when: int) -> int:
        """The latest time, not after `when`, at which nothing was wrong."""
        if self.since is not None and when >= self.since:
            return self.since - 1
        for start, stop in reversed(self.past):
            if start <= when < stop:
                return start - 1
            if when >= stop:
                break
        return when


class Path:
    """The way from one address to another."""

    __slots__ = ("_delays", "_stream", "clogged", "cuts", "jam", "lag", "name", "waiting", "world")

    def __init__(self, world: World, source: str, target: str, delays: Delays) -> None:
        self.world = world
        self.name = f"{source}>{target}"
        self.clogged = 0
        """Until then nothing that is sent from now on arrives."""
        self.lag = 0
        """What each frame takes on top; schedulers set it."""
        self.jam = 0
        """The mean of what each frame takes on top, exponentially distributed."""
        self.cuts = Spans()
        self.waiting: list[End] = []
        """Ends that something was to arrive at while the path was cut: one entry for each."""
        self._delays = delays
        self._stream = Stream(world.seed, self.name, "delays")

    @property
    def cut(self) -> bool:
        """Nothing gets through now."""
        return self.cuts.since is not None

    def delay(self) -> int:
        """How long the next frame takes."""
        delays = self._delays
        span = delays.least + self.lag + self._stream.tail(delays.mean)
        if self.jam:
            span += self._stream.tail(self.jam)
        if delays.heavy and not self._stream.draw() & 1023:
            heavy = self._stream.tail(delays.heavy)
            span += 0 if self.world.calm else heavy
        return span

    def draw(self) -> int:
        """64 bits of the path's own."""
        return self._stream.draw()


@dataclass(frozen=True, slots=True)
class Down:
    """The word that a link is gone, which travels behind what was sent before."""

    why: str
    dead: bool = False
    """The process at the other end is gone."""


class End:
    """One process's end of a link, and what is under way to it."""

    __slots__ = ("broken", "due", "node", "number", "open", "path", "peer", "queue")

    peer: End

    def __init__(self, node: Node, number: int, path: Path) -> None:
        self.node = node
        self.number = number
        self.path = path
        """The way to here."""
        self.open = True
        """The process has not been notified that the link is gone."""
        self.broken = False
        """Nothing more comes to here, though the process has not been notified."""
        self.queue: deque[bytes | Down] = deque()
        self.due = 0

    def send(self, item: bytes | Down) -> None:
        """Have something travel to here, behind all that was sent before."""
        path, world = self.path, self.node.world
        arrival = max(world.now + path.delay(), path.clogged)
        if arrival <= self.due:
            arrival = self.due + 1
        self.due = arrival
        self.queue.append(item)
        world.push(arrival, self.node.tie(), self.arrive)

    def arrive(self) -> None:
        """What is first in the queue has come, unless the path is cut: then it waits."""
        if not self.queue:
            return  # lost with the link
        if self.path.cut:
            self.path.waiting.append(self)
            return
        item = self.queue.popleft()
        if isinstance(item, Down):
            self.close(item)
        elif self.open and not self.broken and self.node.alive:
            self.node.give(self.node.take_frame, self, item)
        elif self.node.answers:
            self.peer.send(Down("the connection was reset", dead=not self.node.alive))

    def hurry(self) -> None:
        """What is under way to here has been for long enough."""
        world = self.node.world
        self.due = world.now
        for _ in self.queue:
            self.due += 1 + self.path.delay() // 8
            world.push(self.due, self.node.tie(), self.arrive)

    def close(self, word: Down) -> None:
        """Tell the process that the link is gone, once."""
        if self.open:
            self.open = False
            self.node.give(self.node.take_down, self, word)

    def lose(self) -> None:
        """The link breaks: what is under way to here is lost, and the process will be notified."""
        self.broken = True
        self.queue.clear()
        word = Down("the connection was reset")
        self.node.world.push(
            self.node.world.now + self.path.delay(), self.node.tie(), self.close, word
        )
