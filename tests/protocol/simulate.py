"""One run of a whole group in the simulator, from a seed, with all checkers on.

`python -m tests.protocol.simulate SEED...` runs seeds and prints what became of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.sim import Node, World
from orcalike.transport.layers.total import Total
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member
from orcalike.transport.wire.message import Message
from tests.protocol.application import Application
from tests.protocol.checkers import Unfinished, Violation, Watch
from tests.protocol.swarm import MS, Swarm

ASK_ELSEWHERE = 3_000 * MS
"""After so long without an answer a joiner asks somebody else."""
LIMIT = 30_000 * MS
"""By then all must be in or out, and quiet."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to."""

    swarm: Swarm
    trace: str
    """A digest over every frame that arrived: the same seed gives the same trace."""
    events: int
    delivered: int
    views: int


@dataclass
class Endpoint:
    """One process of the run."""

    node: Node
    stack: Stack
    application: Application
    asked: bool = False
    """It has asked to join."""
    leaves: bool = False

    @property
    def inside(self) -> bool:
        """It is in the group, as far as it knows, and stays."""
        app = self.application
        return app.installed is not None and app.exited is None and not self.leaves


class Simulation:
    """A group, and what happens to it."""

    def __init__(self, swarm: Swarm) -> None:
        self.swarm = swarm
        self.world = World(swarm.seed, swarm.delays)
        self.watch = Watch()
        self.dice = Random(f"{swarm.seed} events")
        specs = parse_stack(swarm.stack)
        self.endpoints: list[Endpoint] = []
        for i in range(swarm.size):
            incarnation = self.dice.getrandbits(64)
            me = Member(f"sim:{i}", incarnation, witness=swarm.witness and i == 0)
            stack = Stack(specs, StackConfig("group"), me, self.dice.getrandbits(64))
            stack.above = application = Application(stack, self.watch, swarm.piece)
            node = self.world.add(str(i), stack)
            self.endpoints.append(Endpoint(node, stack, application))
            if swarm.stops:
                application.on_exit = partial(self._stop, node)

    def run(self) -> Result:
        """Let it all happen; raises Violation where a promise was broken."""
        try:
            self._schedule()
            self.world.run(lambda: self.world.now > LIMIT)
            self._finish()
        except Exception as error:
            error.add_note(f"in {self.swarm}; {self.world.now} ns, event {self.world.events}")
            error.add_note(f"python -m pytest tests/protocol -k swarm --seed {self.swarm.seed}")
            raise
        watch, world = self.watch, self.world
        return Result(self.swarm, world.trace, world.events, watch.delivered, watch.views)

    # What happens.

    def _schedule(self) -> None:
        swarm, dice = self.swarm, self.dice
        self._join(self.endpoints[0], "")
        when = dice.randint(0, swarm.span)
        for endpoint in self.endpoints[1:]:
            self._at(when, self._try_to_join, endpoint)
            when = when if swarm.together else dice.randint(0, swarm.span)
        for _ in range(swarm.casts):
            self._at(dice.randint(0, 2 * swarm.span), self._cast, dice.choice(self.endpoints))
        for i in swarm.leavers:
            self._at(dice.randint(0, 2 * swarm.span), self._leave, self.endpoints[i])
        for i in swarm.slow:
            self._at(dice.randint(0, 2 * swarm.span), self._slow_down, self.endpoints[i])
        if swarm.end_at_once:
            for endpoint in self.endpoints:
                self._at(3 * swarm.span, self._leave, endpoint)

    def _at(self, when: int, event: Callable[[Endpoint], None], endpoint: Endpoint) -> None:
        self.world.at(when, lambda: event(endpoint))

    def _after(self, ns: int, event: Callable[[Endpoint], None], endpoint: Endpoint) -> None:
        self._at(self.world.now + ns, event, endpoint)

    def _join(self, endpoint: Endpoint, address: str) -> None:
        endpoint.asked = True
        endpoint.node.call(lambda now: endpoint.stack.join(address, now))

    def _try_to_join(self, endpoint: Endpoint) -> None:
        """Through any one member's address; through another's where that leads nowhere."""
        if endpoint.leaves or endpoint.application.installed or self._has_view(endpoint):
            return
        seeds = [other for other in self.endpoints if other.inside]
        if seeds:
            self._join(endpoint, self.dice.choice(seeds).node.address)
            endpoint.application.failed.clear()
            self._watch_join(endpoint)
        elif self._may_come():
            self._after(MS, self._try_to_join, endpoint)

    def _watch_join(self, endpoint: Endpoint) -> None:
        self._after(ASK_ELSEWHERE, self._try_to_join, endpoint)

    def _may_come(self) -> bool:
        """Whether somebody is on the way in."""
        return any(e.asked and e.application.exited is None for e in self.endpoints)

    def _has_view(self, endpoint: Endpoint) -> bool:
        layer = endpoint.stack.focus("MBRSHIP")
        assert layer is not None
        return layer.dump()["view"] is not None

    def _cast(self, endpoint: Endpoint) -> None:
        if not endpoint.inside or endpoint.stack.me.witness:
            return
        for _ in range(self.dice.choice([1, 1, 2, 10])):
            size = self.dice.choice(self.swarm.bodies)
            body = self.dice.randbytes(size)
            self.watch.cast(endpoint.stack.me.incarnation, body)
            endpoint.node.call(partial(endpoint.stack.cast, Message(body)))
        self._check_bounds(endpoint)

    def _leave(self, endpoint: Endpoint) -> None:
        if endpoint.asked and not endpoint.leaves:
            endpoint.leaves = True
            endpoint.node.call(endpoint.stack.leave)

    def _stop(self, node: Node) -> None:
        """The process ends, soon."""
        self.world.at(self.world.now + self.dice.randint(0, MS), lambda: self.world.stop(node))

    def _slow_down(self, endpoint: Endpoint) -> None:
        """It gets what is delivered, and does not apply it for a while."""
        if endpoint.inside:
            endpoint.stack.top.credit(False)
            self._after(self.dice.randint(0, self.swarm.span), self._catch_up, endpoint)

    def _catch_up(self, endpoint: Endpoint) -> None:
        endpoint.stack.top.credit(True)
        endpoint.node.call(endpoint.stack.expire)

    # What must hold.

    def _check_bounds(self, endpoint: Endpoint) -> None:
        """I27, promise 15: nobody is further ahead of the slowest than the window."""
        total = endpoint.stack.focus("TOTAL")
        assert isinstance(total, Total)
        ahead = total.next - total.stable
        if ahead > 2 * total.window_packets:  # of this view, and what the one before left
            raise Violation(f"{ahead} packets ahead, with a window of {total.window_packets}")
        largest = max(self.swarm.bodies) + 1100
        if total.unstable > total.window_bytes + largest:
            raise Violation(f"{total.unstable} bytes, with a window of {total.window_bytes}")

    def _finish(self) -> None:
        """All who asked are in or out, nothing is under way, and all have seen the same."""
        live = [endpoint for endpoint in self.endpoints if endpoint.inside]
        for endpoint in self.endpoints:
            app = endpoint.application
            who = f"{app.me:x} ({endpoint.node.name})"
            if app.problems or app.errors:
                raise Unfinished(f"{who}: {app.problems + app.errors}")
            if app.denied and (live or set(app.denied) != {"the group has ended"}):
                raise Unfinished(f"{who} was denied: {app.denied}")
            if endpoint.leaves and app.exited is None and self._has_view(endpoint):
                raise Unfinished(f"{who} never left")
            if endpoint.asked and not endpoint.leaves and not endpoint.inside and live:
                raise Unfinished(f"{who} never joined")
        self.watch.finish([endpoint.application.me for endpoint in live])
        for endpoint in live:
            self._check_bounds(endpoint)
            total = endpoint.stack.dump()["TOTAL"]
            if total["unordered"] or total["queue"]:
                raise Unfinished(f"{endpoint.node.name} ends with {total}")


def run(seed: int) -> Result:
    """Run the simulator with `seed`; raises Violation, with how to see it again."""
    return Simulation(Swarm.draw(seed)).run()


if __name__ == "__main__":
    for word in sys.argv[1:]:
        result = run(int(word))
        print(result.swarm)
        print(f"  {result.delivered} deliveries, {result.views} views, {result.events} events")
        print(f"  trace {result.trace}")
