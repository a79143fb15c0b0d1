"""One simulated process: a stack, its links, its alarm, and whether it runs at all.

A *link* is two ends, one at each process; what one end sends is under way to the other until it
arrives, is lost because the link breaks, or waits because the path is cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from orcalike.transport.drivers.sim.network import Delays, Path, Spans
from orcalike.transport.drivers.sim.streams import Stream
from orcalike.transport.stack import Stack

LEASES_KEPT = 8


class NodeWorld(Protocol):
    """The world, as far as processes take it."""

    seed: int
    now: int
    delays: Delays
    steps: int
    on_frame: Callable[[End, bytes], None] | None
    on_input: Callable[[Node], None] | None

    def note(self, name: str, data: bytes) -> None:
        """Add to the trace."""

    def push(self, when: int, tie: int, event: Callable[..., None], *args: Any) -> None:
        """Have `event(*args)` happen at the time `when`; `tie` orders what comes together."""

    def crash(self, node: Node) -> None:
        """Kill a process."""

    def wake_neighbours(self) -> None:
        """Have those look into shared memory that were woken just now."""

    def connect(self, node: Node, address: str) -> None:
        """Make a link between `node` and the process at `address`."""

    def disconnect(self, node: Node, link: int, why: str) -> None:
        """Take a link down at both ends."""

    def share_host(self, node: Node, other: Node) -> bool:
        """Whether two processes run on one host: only there a death is certain (H13)."""

    def is_ending(self, node: Node, incarnation: int) -> bool:
        """Whether a process has ended, which `node` will see."""

    def lives(self, node: Node, incarnation: int) -> bool:
        """Whether a process lives and is not stopped, by the word of the kernel that `node` asks."""

    def contact(self, node: Node, incarnation: int, rng: Stream) -> int | None:
        """When the last beat came to `node` that says that its own had arrived; None for never."""

    def leased(self, node: Node, incarnation: int, rng: Stream) -> tuple[int, int]:
        """(key, when) of the last lease that came to `node` from a process; (0, 0) for none."""

    def granted(self, node: Node, incarnation: int) -> int:
        """When `node` granted a lease to another process last, at the latest."""


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
        self.arrive_at(arrival)

    def arrive_at(self, when: int) -> None:
        """What is first in the queue then comes at that time."""
        self.node.world.push(when, self.node.tie(), self.arrive)

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
            self.arrive_at(self.due)

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


class Node:
    """One simulated process. What happens to it is said to the `World`."""

    def __init__(self, world: NodeWorld, name: str, stack: Stack, host: str, entity: str) -> None:
        self.world = world
        self.name = name
        self.host = host
        self.address = f"sim:{name}"
        self.stack = stack
        stack.processes = self
        self.incarnation = stack.me.incarnation
        self.born = world.now
        self.alive = True
        self.answers = True
        """Its machine resets connections that it does not know."""
        self.paused = False
        self.interval: int = stack.config.detection // 5
        """Between two beats, ns."""
        self.silent = Spans()
        """When it sent and received no beats."""
        self.mute = Spans()
        """When it was in a group no more: it answers no beats then."""
        self.starved = Spans()
        """When it ran, and its beats did not."""
        self.known: dict[int, Node] = {}
        """Processes that it ever had a link with, by incarnation: it learns of their ends (H13)."""
        self.beating: dict[int, tuple[int, Spans]] = {}
        """Its heartbeat peers: since when, and when they were none."""
        self.leases: deque[tuple[int, int, Spans]] = deque(maxlen=LEASES_KEPT)
        """What its beats grant, and granted before: the key, since when, and when they did not."""
        self.unleased: dict[int, Spans] = {}
        """When they granted none to one process, by its incarnation."""
        self.cost = 0
        """What each input takes, ns: a slow processor."""
        self.links: list[End] = []
        self.doomed: int | None = None
        """It dies with its next output, of which so many frames still get out."""
        self.inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        """What came while it was paused or busy."""
        self._queues = False
        """What comes now goes into the inbox."""
        self._working = False
        self._alarm: int | None = None
        self._kicked = False
        self._rings = False
        """It will be woken."""
        self._ties = Stream(world.seed, entity, "ties")
        self._beats = Stream(world.seed, entity, "beats")
        self._alarms = Stream(world.seed, entity, "alarms")
        self._heard: dict[int, int] = {}
        self._beats_version = 0

    def is_ending(self, incarnation: int) -> bool:
        """What its stack asks of the kernel."""
        return self.world.is_ending(self, incarnation)

    def __repr__(self) -> str:
        return (
            f"<Node {self.name} {'paused' if self.paused else 'alive' if self.alive else 'dead'}>"
        )

    def tie(self) -> int:
        """Which of two things that come at the same time is first."""
        return self._ties.draw()

    # Inputs.

    def call(self, input_: Callable[[int], None]) -> None:
        """Give the stack one input, now if it runs, and move what comes out of it."""
        self.give(self._call, input_)

    def kick(self) -> None:
        """The application has put something into PACK: cast it, when this event is over."""
        if not self._kicked:
            self._kicked = True
            self.world.push(self.world.now, self.tie(), self.give, self._flush_packets)

    def give(self, input_: Callable[..., None], *args: Any) -> None:
        """Run an input, or queue it while the process does not run; nothing once it is dead."""
        if not self.alive:
            return
        if self._queues:
            self.inbox.append((input_, args))
            return
        input_(*args)
        if self.cost:
            self._queues = True
            self._work_later()

    def take_frame(self, end: End, frame: bytes) -> None:
        """A frame has come."""
        if end.open:
            world = self.world
            world.note(self.name, frame)
            if world.on_frame is not None:
                world.on_frame(end, frame)
            self.stack.receive(end.number, frame, world.now)
            self.drain()

    def take_up(self, end: End, address: str) -> None:
        """A link stands."""
        self.stack.link_up(end.number, address, self.world.now)
        self.drain()

    def take_failed(self, address: str, why: str) -> None:
        """A link could not be made."""
        self.stack.connect_failed(address, why, self.world.now)
        self.drain()

    def take_down(self, end: End, word: Down) -> None:
        """A link is gone; with the last to a process that is gone too, its death is certain (H13)."""
        self.world.note(self.name, word.why.encode())
        self.stack.link_down(end.number, word.why, self.world.now)
        self.drain()
        dead = end.peer.node
        linked = any(each.open and each.peer.node is dead for each in self.links)
        if word.dead and self.world.share_host(self, dead) and self.alive and not linked:
            self.give(self._died, dead.incarnation)

    def take_news(self, dead: Node) -> None:
        """The kernel says that a process ended: take what it had sent, then the word (H13)."""
        self.known.pop(dead.incarnation, None)
        ends = [end for end in self.links if end.open and end.peer.node is dead]
        for end in ends:
            while end.queue:
                item = end.queue.popleft()
                if not isinstance(item, Down) and end.open and not end.broken:
                    self.take_frame(end, item)
            end.close(Down("its process has ended", dead=True))
        if not ends and self.alive:
            self._died(dead.incarnation)

    def take_word(self, gone: Node) -> None:
        """A launcher says that a process is gone: certain on this host, else no more than its links are (H13).

        What is under way from there is lost with them.
        """
        certain = self.world.share_host(self, gone)
        self.known.pop(gone.incarnation, None)
        ends = [end for end in self.links if end.open and end.peer.node is gone]
        for end in ends:
            end.peer.send(Down("closed"))
            end.close(Down("a launcher says that its process is gone", dead=certain))
        if certain and not ends and self.alive:
            self._died(gone.incarnation)

    def _died(self, incarnation: int) -> None:
        now = self.world.now
        lease, leased = self.world.leased(self, incarnation, self._beats)
        self.stack.died(incarnation, now, lease, now - leased)
        self.drain()

    def _call(self, input_: Callable[[int], None]) -> None:
        input_(self.world.now)
        self.drain()

    def _flush_packets(self) -> None:
        self._kicked = False
        self.stack.flush_packets(self.world.now)
        self.drain()

    def _expire(self, due: int) -> None:
        if due != self._alarm or not self.alive:
            return  # an earlier alarm has taken its place
        self.give(self._expire_now)

    def _expire_now(self) -> None:
        self._alarm = None
        deadline = self.stack.deadline
        if deadline is not None and deadline <= self.world.now:
            self._tell_beats()
            self.world.note(self.name, b"")
            self.stack.expire(self.world.now)
        self.drain()

    def _tell_beats(self) -> None:
        """Report to the stack when contact with each heartbeat peer was last known in both directions."""
        for member in self.stack.beats:
            when = self.world.contact(self, member.incarnation, self._beats)
            if when is not None and when > self._heard.get(member.incarnation, -1):
                self._heard[member.incarnation] = when
                self.stack.heard(member.incarnation, when)
        for incarnation in sorted(self.stack.quiet(self.world.now)):
            if self.world.lives(self, incarnation):
                self.stack.lives(incarnation)

    # Outputs.

    def drain(self) -> None:
        """Move what the stack put out, and set its next alarm."""
        world = self.world
        world.steps += 1
        if self.paused:
            return  # stopped in the middle: it goes out afterwards
        out = self.stack.out
        frames = out.take()
        if self.doomed is not None and (frames or not self.doomed):
            frames = frames[: self.doomed]
            for link, frame in frames:
                self._transmit(link, frame)
            world.crash(self)
            return
        for link, frame in frames:
            self._transmit(link, frame)
        if out.connects:
            for address in out.take_connects():
                world.connect(self, address)
        if out.closes:
            for link in out.take_closes():
                if why := self.stack.bottom.take_why(link):
                    self.stack.above.up_system_error(f"link {link} refused: {why}")
                world.disconnect(self, link, "closed")
        if self.stack.beats_version != self._beats_version:
            self._beat()
            if not self.stack.lease:
                granted = [
                    (m.incarnation, world.granted(self, m.incarnation)) for m in self.stack.beats
                ]
                self.stack.leases_ended(granted, world.now)
                self.drain()
                return
        deadline = self.stack.deadline
        if deadline is not None and (self._alarm is None or deadline < self._alarm):
            self._alarm = due = max(deadline, world.now)
            world.push(due, self.tie(), self._expire, due)
        if world.on_input is not None:
            world.on_input(self)
        if self.stack.ear is not None:
            world.wake_neighbours()

    def wake(self) -> None:
        """Another process of this host has written to its alarm: it is scheduled some time later."""
        alarm = self.stack.alarm
        if self.alive and not self._rings and alarm is not None and alarm.silence():
            self._rings = True
            when = self.world.now + self._alarms.below(self.world.delays.mean + 1)
            self.world.push(when, self.tie(), self.give, self._woken)

    def _woken(self) -> None:
        self._rings = False
        self.stack.woken(self.world.now)
        self.drain()

    def _beat(self) -> None:
        """From now on send heartbeats to those that the stack names."""
        self._beats_version = self.stack.beats_version
        wanted = {member.incarnation for member in self.stack.beats}
        if wanted or self.stack.answers:
            self.mute.end(self.world.now)
        else:
            self.mute.begin(self.world.now)
        for incarnation, (_, spans) in self.beating.items():
            if incarnation not in wanted:
                spans.begin(self.world.now)
        for incarnation in sorted(wanted):
            since, spans = self.beating.get(incarnation, (self.world.now, Spans()))
            spans.end(self.world.now)
            self.beating[incarnation] = since, spans
        self._grant(self.stack.lease)
        for incarnation in self.stack.unleased:
            self.unleased.setdefault(incarnation, Spans()).begin(self.world.now)
        for incarnation, spans in self.unleased.items():
            if incarnation not in self.stack.unleased:
                spans.end(self.world.now)

    def _grant(self, lease: int) -> None:
        """Grant this lease, or none, with each beat from now on."""
        now = self.world.now
        if self.leases:
            key, _, ended = self.leases[-1]
            if lease == key:
                ended.end(now)
                return
            ended.begin(now)
        if lease:
            self.leases.append((lease, now, Spans()))

    def _transmit(self, link: int, frame: bytes) -> None:
        end = self.links[link] if link < len(self.links) else None
        if end is not None and end.open:
            end.peer.send(frame)

    # Whether it runs.

    def stop(self) -> None:
        """What comes is queued from here on."""
        self.paused = self._queues = True

    def go_on(self) -> None:
        """Send what it had ready, and work off what has come, an overdue alarm somewhere in it."""
        self.paused = False
        overdue = self._alarm is not None and self._alarm <= self.world.now
        queued = [item for item in self.inbox if item[0] != self._expire_now]
        if overdue:
            queued.insert(self._ties.below(len(queued) + 1), (self._expire_now, ()))
        self.inbox = deque([(self.drain, ()), *queued])
        self._work_later()

    def slow_down(self, cost: int) -> None:
        """Each input takes so long from here on, in ns; 0 is as usual."""
        self.cost = cost

    def die(self) -> None:
        """It runs no more."""
        self.alive = False
        self.inbox.clear()

    def _work_later(self) -> None:
        if not self._working and not self.paused:
            self._working = True
            self.world.push(self.world.now + self.cost + 1, self.tie(), self._work)

    def _work(self) -> None:
        """The next of what is queued; where nothing is, what comes is taken at once again."""
        self._working = False
        if self.paused or not self.alive:
            return
        if self.inbox:
            input_, args = self.inbox.popleft()
            input_(*args)
            self._work_later()
        else:
            self._queues = False
