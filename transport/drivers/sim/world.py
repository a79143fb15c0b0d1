"""The virtual clock, the network between simulated processes, and what goes wrong in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from orcalike.transport.drivers.descriptors import DescriptorsOfOne
from orcalike.transport.drivers.sim.network import Delays, Path, Spans
from orcalike.transport.drivers.sim.node import Down, End, Node
from orcalike.transport.drivers.sim.streams import Stream
from orcalike.transport.membership.lease import window_of
from orcalike.transport.stack import Stack

LAUNCHER = "launcher"
"""Where the ways begin by which its word comes."""


class World:
    """The virtual clock, all processes, all paths, and the trace of all that arrived."""

    def __init__(self, seed: int, delays: Delays | None = None) -> None:
        self.seed = seed
        self.now = 0
        self.events = 0
        self.steps = 0
        """How many inputs the stacks have had."""
        self.nodes: dict[str, Node] = {}
        """The latest process at each address."""
        self.members: dict[int, Node] = {}
        """Every process that ever was, by incarnation."""
        self.delays = delays or Delays()
        self.calm = False
        """No frame takes much longer than others any more."""
        self.beat_loss = 0.0
        """How probable it is that one beat is lost."""
        self.descriptors = DescriptorsOfOne(self._are_near)
        """What the processes give each other: they are on one host if they have an order in shared memory."""
        self.on_frame: Callable[[End, bytes], None] | None = None
        """Called for each frame that arrives."""
        self.on_input: Callable[[Node], None] | None = None
        """Called after each input, when what came out of it is on its way."""
        self.on_death: Callable[[Node], None] | None = None
        """Called for each process that ends."""
        self._paths: dict[tuple[str, str], Path] = {}
        self._generations: dict[str, int] = {}
        self._ties = Stream(seed, "world", "ties")
        self._heap: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._pushed = 0
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace(self) -> str:
        """A digest over every frame that arrived, where, when, and in which order."""
        return self._trace.hexdigest()

    def note(self, name: str, data: bytes) -> None:
        """Add to the trace."""
        self._trace.update(b"%d %b %d %b" % (self.now, name.encode(), len(data), data))

    # Events.

    def at(self, when: int, event: Callable[[], None]) -> None:
        """Have `event` happen at the time `when`."""
        self.push(when, self._ties.draw(), event)

    def push(self, when: int, tie: int, event: Callable[..., None], *args: Any) -> None:
        """Have `event(*args)` happen at the time `when`; `tie` orders what comes together."""
        self._pushed += 1
        heappush(self._heap, (when, tie, self._pushed, event, args))

    def step(self) -> bool:
        """Let the next event happen; False where nothing is left."""
        if not self._heap:
            return False
        when, _, _, event, args = heappop(self._heap)
        self.now = max(self.now, when)
        self.events += 1
        event(*args)
        return True

    def run(self, until: Callable[[], bool] | None = None, events: int = 1_000_000) -> bool:
        """Step until the condition holds, or nothing is left, or `events` have happened."""
        for _ in range(events):
            if until is not None and until():
                return True
            if not self.step():
                break
        return until is None or until()

    def run_for(self, span: int, events: int = 1_000_000) -> bool:
        """Let all happen that is due within so many ns; False where it is more than `events`."""
        end = self.now + span
        for _ in range(events):
            if not self._heap or self._heap[0][0] > end:
                self.now = end
                return True
            self.step()
        return False

    # Processes.

    def add(self, name: str, stack: Stack, host: str | None = None) -> Node:
        """A new process with this stack; its address is `sim:NAME`.

        On one `host` processes see each other end (H13); by default each has a host of its own.
        A second process of one name is a restart: what the first knew is lost.
        """
        generation = self._generations[name] = self._generations.get(name, 0) + 1
        address = f"sim:{name}"
        if address in self.nodes:
            self.nodes[address].answers = True
        stack.descriptors = self.descriptors
        node = Node(self, name, stack, host or name, f"{name}/{generation}")
        self.nodes[address] = self.members[node.incarnation] = node
        return node

    def share_host(self, node: Node, other: Node) -> bool:
        """Whether two processes run on one host: only there a death is certain, and leases count (H13)."""
        return node.host == other.host

    def _are_near(self, one: str, other: str) -> bool:
        """Whether the processes at two addresses run on one host."""
        return self.share_host(self.nodes[one], self.nodes[other])

    def stop(
        self,
        node: Node,
        why: str = "the process ended",
        *,
        soon: bool = False,
        by_word: bool = False,
    ) -> None:
        """End a process: its links go down, what it sent before still arrives.

        Its host's processes see its end, or have a launcher's word for that alone (`by_word`).
        """
        if node.alive:
            node.die()
            node.silent.begin(self.now)
            if self.on_death is not None:
                self.on_death(node)
            for end in node.links:
                if end.open:
                    end.open = False
                    end.peer.send(Down(why, dead=not by_word))
            if by_word:
                for other in self.members.values():
                    other.known.pop(node.incarnation, None)  # the kernel says nothing of it
                self.tell_gone(node)
            else:
                self._tell(node, soon=soon)

    def tell_gone(self, gone: Node) -> None:
        """A launcher tells all others that a process is gone, each by a way of its own.

        On the process's own host it says so only of an end that was seen; elsewhere it may be wrong.
        """
        for node in self.nodes.values():
            if node is gone or not node.alive or (gone.alive and node.host == gone.host):
                continue
            when = self.now + self.path(LAUNCHER, node.name).delay()
            self.push(when, node.tie(), node.give, node.take_word, gone)

    def wake_neighbours(self) -> None:
        """Have those look into shared memory that were woken just now."""
        for node in self.nodes.values():
            if node.stack.ear is not None:
                node.wake()

    def _tell(self, dead: Node, *, soon: bool) -> None:
        """Processes of the same host see the end of one that they know (H13).

        Those with a link to it learn of it behind what was sent, or `soon`, as a kernel tells;
        those whose links broke before learn of it too.
        """
        for node in self.nodes.values():
            if not self.share_host(node, dead) or node is dead or not node.alive:
                continue
            linked = any(end.open and end.peer.node is dead for end in node.links)
            if dead.incarnation in node.known and (soon or not linked):
                wait = self.path(dead.name, node.name).delay()
                self.push(self.now + wait, node.tie(), node.give, node.take_news, dead)

    def crash(
        self,
        node: Node,
        keep: int | None = None,
        *,
        machine: bool = False,
        soon: bool = False,
        by_word: bool = False,
    ) -> None:
        """Kill a process; with `keep`, at its next output, of which so many frames get out.

        What it sent before still arrives, then the word that its links are gone. Where the whole
        `machine` dies there is no such word, until a process is started there again. With `soon`
        the processes of its host learn of it before what is under way would have come; they take
        that first. `by_word` they have a launcher's word, and lose what is under way if that is first.
        """
        if keep is not None:
            node.doomed = keep
        elif machine and node.alive:
            node.answers = False
            for end in node.links:
                end.open = False
                end.peer.node.known.pop(node.incarnation, None)
            self.stop(node)
        else:
            self.stop(node, soon=soon, by_word=by_word)

    def pause(self, node: Node, until: int | None = None) -> None:
        """Stop a process as SIGSTOP does, until a time or until `resume`."""
        if node.alive and not node.paused:
            node.stop()
            node.silent.begin(self.now)
            if until is not None:
                self.push(until, node.tie(), self.resume, node)

    def lives(self, node: Node, incarnation: int) -> bool:
        """Whether a process lives and is not stopped, by the word of the kernel that `node` asks.

        That kernel knows the processes of its own host, and a cut stands for a network between two.
        """
        other = node.known.get(incarnation)
        if other is None or not self.share_host(node, other) or not other.alive or other.paused:
            return False
        return not (self.path(node.name, other.name).cut or self.path(other.name, node.name).cut)

    def is_ending(self, node: Node, incarnation: int) -> bool:
        """Whether a process that `node` knows has ended, and is seen to have: at once, or behind what is under way."""
        other = node.known.get(incarnation)
        return other is not None and self.share_host(node, other) and not other.alive

    def hang(self, node: Node, until: int | None = None) -> None:
        """Let a process do nothing but beat, until a time or until `resume`."""
        if node.alive and not node.paused:
            node.stop()
            if until is not None:
                self.push(until, node.tie(), self.resume, node)

    def resume(self, node: Node) -> None:
        """Let a process go on that was paused."""
        if node.alive and node.paused:
            node.silent.end(self.now)
            node.go_on()

    def contact(self, node: Node, incarnation: int, rng: Stream) -> int | None:
        """When the last beat came to `node` that says that its own had arrived; None for never."""
        other = self.members.get(incarnation)
        if other is None:
            return None
        # A beat from one that is no heartbeat peer is answered, too: by all that send beats, or join.
        when = self._reached(node, other, self._drawn(node, other, rng), other.mute)
        return when if when >= other.born else None

    def leased(self, node: Node, incarnation: int, rng: Stream) -> tuple[int, int]:
        """(key, when) of the last lease that came to `node` from a process; (0, 0) for none.

        `when` is the time of the beat of `node` that it answers.
        """
        other = self.members.get(incarnation)
        if (
            other is None
            or not self.share_host(node, other)
            or node.incarnation not in other.beating
        ):
            return 0, 0
        _, beating = other.beating[node.incarnation]
        drawn = self._drawn(node, other, rng)
        without = other.unleased.get(node.incarnation, Spans())
        for lease, since, ended in reversed(other.leases):
            when = self._reached(node, other, drawn, beating, ended, without)
            # The first beat that grants it leaves at once, and answers one that came before it.
            at_once = beating.before(since) == since and when >= since - node.interval
            if when >= since or at_once:
                return lease, when
        return 0, 0

    def granted(self, node: Node, incarnation: int) -> int:
        """When `node` granted a lease to another process last, at the latest."""
        other = self.members.get(incarnation)
        if (
            other is None
            or not self.share_host(node, other)
            or node.incarnation not in other.beating
        ):
            return 0  # there deaths are never certain, so no member counts on a lease
        _, beating = other.beating[node.incarnation]
        window = window_of(node.stack.config.detection)
        return min(self.now, self._reached(node, other, self.now, beating) + window)

    def _drawn(self, node: Node, other: Node, rng: Stream) -> int:
        """When the last heartbeat for `node` left, if nothing was wrong."""
        when = self.now - self.delays.least - rng.below(node.interval)
        while self.beat_loss and rng.random() < self.beat_loss:
            when -= node.interval
        for way in (self.path(node.name, other.name), self.path(other.name, node.name)):
            if way.jam:
                when -= rng.tail(way.jam) // 3  # the first to come of three that are under way
        return when

    def _reached(self, node: Node, other: Node, when: int, *stops: Spans) -> int:
        """The last time, not after `when`, at which beats of both reached the other."""
        ways = (self.path(node.name, other.name), self.path(other.name, node.name))
        spans = (
            node.silent,
            other.silent,
            node.starved,
            other.starved,
            ways[0].cuts,
            ways[1].cuts,
            *stops,
        )
        troubles = [span for span in spans if span.past or span.since is not None]
        latest = when + 1
        while when < latest:
            latest = when
            for trouble in troubles:
                when = trouble.before(when)
        return when

    # Links.

    def path(self, source: str, target: str) -> Path:
        """The way from one name to another."""
        path = self._paths.get((source, target))
        if path is None:
            path = self._paths[source, target] = Path(self, source, target, self.delays)
        return path

    def connect(self, node: Node, address: str) -> None:
        """Make a link between `node` and the process at `address`."""
        there = self.path(node.name, address.removeprefix("sim:"))
        when = self.now + self.delays.connect + there.delay()
        self.push(when, node.tie(), self._connected, node, address)

    def _connected(self, node: Node, address: str) -> None:
        if not node.alive:
            return
        peer = self.nodes.get(address)
        name = address.removeprefix("sim:")
        there, back = self.path(node.name, name), self.path(name, node.name)
        off = peer is not None and not peer.alive and not peer.answers
        if there.cut or back.cut or off:
            wait = self.delays.timeout if there.draw() & 1 else 0
            why = "it cannot be reached"
            self.push(self.now + wait, node.tie(), node.give, node.take_failed, address, why)
        elif peer is None or not peer.alive:
            node.give(node.take_failed, address, "no process is there")
        else:
            here, far = End(node, len(node.links), back), End(peer, len(peer.links), there)
            here.peer, far.peer = far, here
            if self.share_host(node, peer):
                node.known[peer.incarnation], peer.known[node.incarnation] = peer, node
            node.links.append(here)
            if peer is node:
                far.number += 1
            peer.links.append(far)
            peer.give(peer.take_up, far, "")
            node.give(node.take_up, here, address)

    def disconnect(self, node: Node, link: int, why: str) -> None:
        """Take a link down at both ends; the far end learns of it after what is under way."""
        end = node.links[link] if link < len(node.links) else None
        if end is not None and end.open:
            end.peer.send(Down(why))
            end.close(Down(why))

    # What goes wrong with paths, each in one direction.

    def cut(self, source: str, target: str) -> None:
        """Nothing gets through; what is sent waits, unless the link breaks."""
        self.path(source, target).cuts.begin(self.now)

    def heal(self, source: str, target: str) -> None:
        """Messages that were held go on their way again."""
        path = self.path(source, target)
        if path.cut:
            path.cuts.end(self.now)
            when = self.now
            waiting, path.waiting = path.waiting, []
            for end in waiting:
                when += 1 + path.delay() // 8
                end.arrive_at(when)

    def heal_all(self) -> None:
        """No path is cut, clogged or slow any more, and what was to take long comes soon."""
        self.calm = True
        for source, target in list(self._paths):
            self.heal(source, target)
            path = self._paths[source, target]
            path.clogged = path.lag = path.jam = 0
        for node in self.members.values():
            for end in node.links:
                if end.queue:
                    end.hurry()
                else:
                    end.due = self.now  # what was to come, and is lost, holds up nothing

    def clog(self, source: str, target: str, until: int) -> None:
        """What is sent from now on arrives after `until`."""
        path = self.path(source, target)
        path.clogged = max(path.clogged, until)

    def break_links(self, one: str, other: str, *, one_end: bool = False) -> None:
        """Break all links between two: both ends learn of it, and what was under way is lost.

        With `one_end` only `one` learns of it; the other does when it sends something.
        """
        node = self.nodes[f"sim:{one}"]
        for end in node.links:
            if end.open and end.peer.node.name == other:
                end.lose()
                if not one_end:
                    end.peer.lose()
