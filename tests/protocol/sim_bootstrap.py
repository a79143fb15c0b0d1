"""Jobs whose group is made by all ranks: an engine starts, kills and restarts their processes, in any order.

An engine runs one process of each rank at a time; then ways may be cut and processes stand still,
too. Or two of rank 0 run at once (pods of one index that overlap, two launchers): then ways and
processes work, but for links that break at one end. If these two do not know each other's addresses, the
others are not started anew: of a rank 0 that none of them has ever seen no process could know.

    python -m tests.protocol.sim_bootstrap 17 18
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

from orcalike.simulator.checkers.facts import Violation
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.sim import Delays, Node, Stream, World
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View
from tests.lib.command_lines import ask_seeds
from tests.lib.recording_application import RecordingApplication

RANKS = 4
D = 100_000_000
SPECS = parse_stack("XFER:TOTAL:MBRSHIP:COM:sim")
SLOW = 20 * D
"""A member that was left out by a leader that died with it may notice nothing before that."""
TWIN = "0b"
"""A second process of rank 0."""
RETRY_STEP, RETRY_MAX = D // 25, D
ROUNDS = 50
"""In so many times D the group must be there: it takes about ten, unless it is blocked for good."""


class Process(RecordingApplication):
    """One process of the job: it asks to be let in until it is, and ends if it is refused."""

    def __init__(self, job: Job, name: str, stack: Stack) -> None:
        super().__init__(stack)
        self.job, self.process, self.stack = job, name, stack
        self.membership: Any = stack.focus("MBRSHIP")
        self.attempts = 0
        self.is_blocked = False
        self.node: Node

    @property
    def is_inside(self) -> bool:
        """It is in a view, and runs; its state may still be to come."""
        return self.node.alive and self.membership.view is not None

    def enter(self, now: int) -> None:
        """What a session does: rank 0 asks all, another rank one after the other."""
        addresses = self.job.addresses_for(self.process)
        if self.process in ("0", TWIN):
            self.stack.make_or_join(addresses, now)
        else:
            self.stack.join(addresses[self.attempts % len(addresses)], now)

    def up_view(self, view: View, cut: bytes) -> None:
        if len(view.members) == 1 and view.number == 1:
            self.job.check_alone(self)
        self.is_blocked = False
        super().up_view(view, cut)

    def up_blocked(self, missing: tuple[Member, ...], rule: str) -> None:
        self.is_blocked = True

    def up_join_failed(self, why: str) -> None:
        super().up_join_failed(why)
        self.attempts += 1
        at_once = self.process not in ("0", TWIN) and self.attempts % (len(self.job.names) - 1)
        pause = 0 if at_once else min(RETRY_STEP * self.attempts, RETRY_MAX)
        self.job.world.at(self.job.world.now + pause, self._again)

    def _again(self) -> None:
        if not self.is_inside and self.exited is None and not self.denied:
            self.node.call(self.enter)

    def up_join_denied(self, why: str) -> None:
        super().up_join_denied(why)
        self.job.ends(self)

    def up_exit(self, why: str) -> None:
        super().up_exit(why)
        self.job.ends(self)


class Job:
    """The processes of one job, and the engine that starts them."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(f"{seed} bootstrap")
        delays = Delays(
            least=rng.choice([1_000, 50_000]),
            mean=rng.choice([1_000, D // 200, D // 20]),
            connect=rng.choice([1_000, D // 100]),
            timeout=rng.choice([D // 4, 2 * D]),
        )
        self.world = World(seed, delays)
        self.has_twin = rng.random() < 0.4
        self.twins_meet = rng.random() < 0.5
        self.names = [*map(str, range(RANKS)), *([TWIN] if self.has_twin else [])]
        self.hosts = {name: f"host {rng.randrange(rng.choice([1, 4]))}" for name in self.names}
        self.current: dict[str, Process] = {}
        self.started = 0
        self.made = 0
        """How many groups were made."""
        self.healing = False

    def addresses_for(self, name: str) -> tuple[str, ...]:
        """Where a process looks for the others."""
        unknown = {"0": TWIN, TWIN: "0"}.get(name, "") if not self.twins_meet else ""
        return tuple(f"sim:{each}" for each in self.names if each not in (name, unknown))

    # What the engine does.

    def start(self, name: str) -> None:
        """Start a process, or kill the one that runs and start another."""
        world, self.started = self.world, self.started + 1
        if (before := self.current.get(name)) is not None:
            world.stop(before.node)
        rng = Stream(world.seed, f"{name}/{self.started}", "member")
        me = Member(f"sim:{name}", rng.draw(), int(name[0]))
        config = StackConfig("job", detection=D, slow=SLOW, unanimous=RANKS)
        stack = Stack(SPECS, config, me, rng.draw())
        self.current[name] = process = Process(self, name, stack)
        stack.above = process
        process.node = world.add(name, stack, self.hosts[name])
        process.node.call(process.enter)

    def kill(self, name: str) -> None:
        """Kill it, perhaps in the middle of its next output."""
        if (process := self.current.get(name)) is not None:
            keep = self.rng.choice([None, None, 0, 1, 2])
            soon = self.rng.random() < 0.3
            self.world.crash(process.node, keep, machine=self.rng.random() < 0.2, soon=soon)

    def ends(self, process: Process) -> None:
        """It is out, or was refused: its program ends, and the engine starts it again, but no twin."""
        if self.current.get(process.process) is process:
            self.world.at(self.world.now, partial(self._ended, process))

    def _ended(self, process: Process) -> None:
        if self.current.get(process.process) is not process or not process.node.alive:
            return
        self.world.stop(process.node)
        if process.process != TWIN:
            later = self.world.now + self.rng.randrange(D)
            self.world.at(later, partial(self._start_again, process))

    def _start_again(self, process: Process) -> None:
        if self.current[process.process] is process:
            self.start(process.process)

    # What must hold.

    def check_alone(self, process: Process) -> None:
        """A process makes a group: no other is in one."""
        self.made += 1
        for other in self.current.values():
            if other is not process and other.is_inside:
                what = f"{process.process} makes a group, and {other.process} is in one"
                raise Violation("I34", what)

    # The run.

    def run(self) -> int:
        """Let it all happen; how many groups were made, one after the other."""
        rng, world = self.rng, self.world
        span = rng.choice([D // 10, D, 5 * D, 20 * D])
        for name in self.names:
            world.at(rng.randrange(span), partial(self.start, name))
        for _ in range(rng.choice([0, 1, 3, 8, 20])):
            world.at(rng.randrange(2 * span), partial(self._disturb, rng.choice(self.names)))
        if rng.random() < 0.5:
            world.at(rng.randrange(span, 2 * span), self._outage)
        world.run_for(2 * span + 5 * D)
        self._heal()
        if not self._settles():
            self._restart_all()
            if not self._settles():
                raise Violation("I28", f"no group of all ranks: {self._standing()}")
        return self.made

    def _disturb(self, name: str) -> None:
        rng, world = self.rng, self.world
        if self.healing:
            return
        process = self.current.get(name)
        what = rng.choice(["kill", "restart", "restart", "break", "stand", "cut"])
        other = rng.choice(self.names)
        if what in ("kill", "restart") and not self._may_end(name):
            return
        if what == "kill":
            self.kill(name)
        elif what == "restart":
            self.start(name)
        elif process is None or other == name:
            return
        elif what == "break":
            world.break_links(name, other, one_end=rng.random() < 0.7)
        elif self.has_twin:
            return
        elif what == "stand":
            world.pause(process.node, world.now + rng.randrange(1, 5 * D))
        else:
            self._cut(name, other, world.now + rng.randrange(1, 5 * D))

    def _may_end(self, name: str) -> bool:
        return self.twins_meet or not self.has_twin or name in ("0", TWIN)

    def _cut(self, one: str, other: str, until: int) -> None:
        for source, target in ((one, other), (other, one)):
            self.world.cut(source, target)
            self.world.at(until, partial(self.world.heal, source, target))

    def _outage(self) -> None:
        """All but one are started anew, while that one stands still or is cut off."""
        rng, world = self.rng, self.world
        left, until = rng.choice(self.names), world.now + rng.randrange(2 * D, 8 * D)
        for name in self.names:
            if name != left and self._may_end(name):
                world.at(world.now + rng.randrange(D), partial(self.start, name))
        if self.has_twin or left not in self.current:
            return
        if rng.random() < 0.5:
            world.pause(self.current[left].node, until)
        else:
            for name in self.names:
                if name != left:
                    self._cut(left, name, until)

    def _heal(self) -> None:
        self.healing = True
        self.world.heal_all()
        for name in self.names:
            process = self.current.get(name)
            if process is not None:
                process.node.doomed = None
                self.world.resume(process.node)
            if name == TWIN:
                if process is not None:
                    self.world.stop(process.node)
            elif process is None or not process.node.alive:
                self.start(name)

    def _restart_all(self) -> None:
        """A group that is blocked for good: its members end, as people do that read this."""
        inside = [each for each in self.current.values() if each.is_inside]
        if not any(each.is_blocked for each in inside):
            raise Violation("I28", f"none is blocked, and not all are in: {self._standing()}")
        for name in self.rng.sample(self.names[:RANKS], RANKS):
            self.world.stop(self.current[name].node)
        for name in self.rng.sample(self.names[:RANKS], RANKS):
            self.start(name)

    def _settles(self) -> bool:
        end = self.world.now + ROUNDS * D
        while self.world.now < end:
            self.world.run_for(D)
            if self._is_whole():
                return True
        return False

    def _is_whole(self) -> bool:
        ranks = [self.current[name] for name in self.names[:RANKS]]
        views = {each.installed for each in ranks}
        return all(each.is_inside for each in ranks) and len(views) == 1

    def _standing(self) -> str:
        return "; ".join(
            f"{each.process} {'in ' + str(each.installed) if each.is_inside else 'out'}"
            f"{', blocked' if each.is_blocked else ''}{', dead' if not each.node.alive else ''}"
            f" ({each.failed[-1:]} {each.denied} {each.exited})"
            for each in self.current.values()
        )


@contextmanager
def named(seed: int) -> Iterator[None]:
    """A violation says of which seed it is."""
    try:
        yield
    except Violation as violation:
        violation.add_note(f"python -m tests.protocol.sim_bootstrap {seed}")
        raise


def run(seed: int) -> int:
    """One order of starts, kills and restarts; how many groups were made."""
    with named(seed):
        return Job(seed).run()


if __name__ == "__main__":
    for seed in ask_seeds("tests.protocol.sim_bootstrap", __doc__):
        print(f"{seed}: {run(seed)} groups")
