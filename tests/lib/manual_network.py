"""A group whose network is moved by hand: nothing arrives before the test says so.

For tests that need one certain interleaving, and for scripts that show every frame. The stacks
are the same as everywhere; time stands still unless the test moves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgpack

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.descriptors import DescriptorsOfOne
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from orcalike.transport.wire.message import Message
from tests.lib import orders
from tests.lib.recording_application import AnyBodies, RecordingApplication

STACK = "XFER:TOTAL:MBRSHIP:COM:sim"
"""Without PACK, so that each cast is a packet."""


class Narrator(RecordingApplication):
    """An application that says in one line what it sees."""

    say: Callable[[str], None]

    def up_cast(self, message: Message) -> None:
        super().up_cast(message)
        source = self.sender(message.source).address.removeprefix("sim:")
        self.say(f"deliver {message.seqno} of {source}: {message.body.decode(errors='replace')}")

    def up_send(self, message: Message) -> None:
        super().up_send(message)
        self.say(f"send from place {message.source}: {message.body.decode(errors='replace')}")

    def up_view(self, view: View, cut: bytes) -> None:
        super().up_view(view, cut)
        names = _names(view) or "no member"
        self.say(f"view {view.number}: {names}, after {len(self.history) - 1} events")

    def up_problem(self, member: object, why: str) -> None:
        super().up_problem(member, why)
        self.say(f"problem with {member}: {why}")

    def up_system_error(self, why: str) -> None:
        super().up_system_error(why)
        self.say(f"system error: {why}")

    def up_join_denied(self, why: str) -> None:
        super().up_join_denied(why)
        self.say(f"join denied: {why}")

    def up_join_failed(self, why: str) -> None:
        super().up_join_failed(why)
        self.say(f"join failed: {why}")

    def up_exit(self, why: str) -> None:
        super().up_exit(why)
        self.say(f"exit: {why}")


class Endpoint:
    """One member, or a joiner: its stack, and where each of its links leads."""

    def __init__(self, name: str, stack: Stack, application: Narrator) -> None:
        self.name = name
        self.stack = stack
        self.application = application
        self.links: list[tuple[Endpoint, int] | None] = []
        self.queues: list[deque[bytes]] = []
        """What each link carries to its other end, and has not arrived there."""
        self.beats_version = 0


class ManualNetwork:
    """Endpoints by name, the frames between them, and what was seen since it was last asked."""

    def __init__(self, stack: str = "") -> None:
        """Over this stack; without one, over the order of the test."""
        self.stack = stack or orders.manual_stack()
        self.now = 0
        self.monitor: AnyBodies | None = AnyBodies()
        """None: a member is made to lie, or the stack orders nothing, so a history proves nothing."""
        self.endpoints: dict[str, Endpoint] = {}
        self.wakes = True
        """Members that shared memory wakes look at it at once, but for those that are `asleep`."""
        self.asleep: set[str] = set()
        self.descriptors = DescriptorsOfOne()
        self.freshness = 1_000_000
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """What was seen since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def __getitem__(self, name: str) -> RecordingApplication:
        return self.endpoints[name].application

    def add(
        self,
        name: str,
        rank: int | None = None,
        *,
        witness: bool = False,
        options: Mapping[str, object] | None = None,
        group: str = "group",
        epoch: int = 0,
        unanimous: int = 0,
    ) -> None:
        """A new endpoint, outside of the group; its wall clock is ahead of the time by `epoch` ns.

        `unanimous` ranks make the group together, if that is not 0.
        """
        number = len(self.endpoints) + 1
        me = Member(f"sim:{name}", number, rank, witness)
        config = StackConfig(
            group,
            dict(options or {}),
            epoch=epoch,
            unanimous=unanimous,
            freshness=self.freshness,
        )
        stack = Stack(parse_stack(self.stack), config, me, number)
        stack.descriptors = self.descriptors
        stack.waiting = 1  # what is in shared memory is looked at at once
        stack.above = application = Narrator(stack, self.monitor)
        application.say = lambda line: self._lines.append(f"{name}: {line}")
        self.endpoints[name] = Endpoint(name, stack, application)

    def form(self, names: str, witness: str = "") -> None:
        """A group of these members, each joining through the first."""
        for name in names.split():
            self.add(name, witness=name == witness)
            self.join(name, "" if name == names.split()[0] else names.split()[0])
            self.stabilize()

    # Inputs.

    def call(self, name: str, downcall: Callable[[int], None]) -> None:
        """Give a stack one input, and move what comes out of it onto the links."""
        downcall(self.now)
        self._drain(self.endpoints[name])
        self._wake()

    def expire(self, names: Iterable[str], beating: Iterable[str]) -> None:
        """These members have just got beats of all that are beating, and their deadlines come."""
        for name in names:
            stack = self.endpoints[name].stack
            for other in beating:
                stack.heard(self.endpoints[other].stack.me.incarnation, self.now)
            self.call(name, stack.expire)

    def _wake(self) -> None:
        """Shared memory is no network: members that are woken look at it at once."""
        if not self.wakes:
            return
        for name, end in self.endpoints.items():
            if end.stack.ear is not None and name not in self.asleep:
                end.stack.rung(self.now)
                self._drain(end)

    def join(self, name: str, through: str) -> None:
        """`name` asks to be let in; without `through` it makes the group."""
        address = f"sim:{through}" if through else ""
        self.call(name, lambda now: self.endpoints[name].stack.join(address, now))

    def cast(self, name: str, body: bytes, degree: int = 0) -> None:
        """`name` casts, with a resilience degree."""
        endpoint = self.endpoints[name]
        if self.monitor is not None:
            self.monitor.cast(endpoint.stack.me.incarnation, body, degree)
        message = Message(body)
        message.degree = degree
        self.call(name, lambda now: endpoint.stack.cast(message, now))

    def leave(self, name: str) -> None:
        """`name` asks to leave."""
        if self.monitor is not None:
            self.monitor.leave(self.endpoints[name].stack.me.incarnation)
        self.call(name, self.endpoints[name].stack.leave)

    def credit(self, name: str, given: bool) -> None:
        """`name` applies what it gets, or does not for now."""
        self.endpoints[name].stack.top.credit(given)
        self.call(name, self.endpoints[name].stack.expire)

    def cut_off(self, name: str) -> None:
        """The links of `name` to all others break, with what was on them."""
        for other in self.endpoints:
            if other != name:
                self.break_links(name, other)

    def break_links(self, one: str, other: str) -> None:
        """The links between the two break, with what was on them."""
        for end in (self.endpoints[one], self.endpoints[other]):
            for link, far in enumerate(end.links):
                if far is not None and far[0].name in (one, other):
                    self._down(end, link, "the link broke")

    def lose_end(self, one: str, other: str) -> None:
        """`one` loses its links to `other`, with what is on them; `other` does when it sends."""
        end = self.endpoints[one]
        for link, far in enumerate(end.links):
            if far is not None and far[0].name == other:
                end.links[link] = None
                end.queues[link].clear()
                far[0].queues[far[1]].clear()
                self.call(one, partial(end.stack.link_down, link, "it broke"))

    # The network.

    def deliver(self, source: str, target: str, count: int = 1) -> int:
        """Let up to `count` frames from one to the other arrive; returns how many did."""
        end = self.endpoints[source]
        arrived = 0
        for link, far in enumerate(end.links):
            while far is not None and far[0].name == target and end.queues[link]:
                if arrived == count:
                    return arrived
                if far[0].links[far[1]] is None:
                    self._down(end, link, "it was reset")  # half open until something is sent
                    break
                frame = end.queues[link].popleft()
                arrived += 1
                self._lines.append(f"{source}->{target} {describe(frame)}")
                self.inject(target, far[1], frame)
        return arrived

    def inject(self, target: str, link: int, frame: bytes) -> None:
        """Let a frame arrive that no member need have sent."""
        stack = self.endpoints[target].stack
        self.call(target, lambda now: stack.receive(link, frame, now))

    def stabilize(self) -> None:
        """Let all arrive, in turn, until nothing is under way."""
        pairs = [(one, other) for one in self.endpoints for other in self.endpoints]
        arrived = 1
        while arrived:
            arrived = sum(self.deliver(one, other) for one, other in pairs)
            self._wake()  # one that was woken may have written since another one was

    def members(self, name: str) -> str:
        """The members of the view that `name` has installed, the oldest first."""
        view = self[name].installed
        assert view is not None
        return _names(view)

    def frames(self, source: str) -> list[bytes]:
        """What is on its way from `source`."""
        return [frame for queue in self.endpoints[source].queues for frame in queue]

    def link(self, source: str, target: str) -> int:
        """A link of `source` to `target`."""
        links = self.endpoints[source].links
        return next(i for i, far in enumerate(links) if far is not None and far[0].name == target)

    def _drain(self, end: Endpoint) -> None:
        for link, frame in end.stack.out.take():
            if end.links[link] is not None:
                end.queues[link].append(frame)
        if end.stack.beats_version != end.beats_version:
            end.beats_version = end.stack.beats_version
            if not end.stack.lease:
                end.stack.leases_ended([], self.now)  # by hand no beats are sent, so none grants
                self._drain(end)
        for address in end.stack.out.take_connects():
            self._connect(end, address)
        for link in end.stack.out.take_closes():
            if why := end.stack.bottom.take_why(link):
                end.application.up_system_error(f"link {link} refused: {why}")
            self._down(end, link, "closed")

    def _connect(self, end: Endpoint, address: str) -> None:
        peer = self.endpoints.get(address.removeprefix("sim:"))
        if peer is None:
            self.call(
                end.name, lambda now: end.stack.connect_failed(address, "no process is there", now)
            )
            return
        here, there = len(end.links), len(peer.links)
        for one, far in ((end, (peer, there)), (peer, (end, here))):
            one.links.append(far)
            one.queues.append(deque())
        self.call(peer.name, lambda now: peer.stack.link_up(there, "", now))
        self.call(end.name, lambda now: end.stack.link_up(here, address, now))

    def _down(self, end: Endpoint, link: int, why: str) -> None:
        far = end.links[link] if link < len(end.links) else None
        if far is None:
            return
        peer, peer_link = far
        for one, number in ((end, link), (peer, peer_link)):
            if one.links[number] is not None:
                one.links[number] = None
                one.queues[number].clear()
                self.call(one.name, partial(one.stack.link_down, number, why))


KINDS = {1: "REQUEST", 2: "ORDERED", 3: "EXPECT"}
PIECES = {2: "PIECE", 3: "LAST", 4: "WANT", 5: "SEND", 7: "FAILED", 8: "REFUSED"}


def _names(view: View) -> str:
    return " ".join(member.address.removeprefix("sim:") for member in view.members)


def describe(frame: bytes) -> str:
    """A frame in a few words; of another stack than STACK, its length alone."""
    try:
        return _describe(frame)
    except (ValueError, LookupError, TypeError):
        return f"{len(frame)} bytes"


def _describe(frame: bytes) -> str:
    if frame[6] == 1:
        return "HELLO"
    key = int.from_bytes(frame[8:16], "little")
    if key >> 63:
        fields = msgpack.unpackb(frame[16:])
        return f"{fields[0]}: {fields[1]}" if fields[0] == "DENIED" else str(fields[0])
    view = f"v{key >> 24 & 0xFFFFFFFF}"
    if frame[16] not in KINDS:
        return f"{view} {PIECES[frame[17]]} {int.from_bytes(frame[26:30], 'little')}"
    counter, number = (int.from_bytes(frame[i : i + 8], "little") for i in (24, 32))
    if frame[16] == 3:
        return f"{view} EXPECT {number}"
    what = "COMPLETE" if frame[56] else frame[57:].decode(errors="replace")
    seqno = f" as {number}" if frame[16] == 2 else f", expects {number}"
    return f"{view} {KINDS[frame[16]]} packet {counter} of member {frame[18]}{seqno}: {what}"
