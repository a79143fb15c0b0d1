"""One run of a scenario: the faults, then the time in which the group must recover.

First safety: whatever goes wrong, nothing that was promised may break. Then the faults end, and
within 10 D there must be one primary view of all its members that run, with nothing left to
deliver; or, if too few of them are left by the rule H1, a group that says that it is blocked
(G29).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from orcalike.simulator.application import Application
from orcalike.simulator.checkers.facts import Violation
from orcalike.simulator.checkers.monitor import Monitor
from orcalike.simulator.faults import Faults
from orcalike.simulator.recovery import Recovery
from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.transport.config import StackConfig
from orcalike.transport.drivers.sim import Node, Stream, World
from orcalike.transport.membership.coordinator import UNDER_WAY
from orcalike.transport.membership.effects import Changed
from orcalike.transport.membership.failure_detector import longest_silence
from orcalike.transport.stack import Stack
from orcalike.transport.stacks import parse_stack
from orcalike.transport.view import Member, View

EVENTS_MAX = 2_000_000
"""More events than that are a group that never comes to rest."""
VIEWS_PER_CHANGE = 10
"""More views for each fault, join and leave are a group that thrashes."""
KEPT_LEAST = 500
"""Bytes since a state, past which a witness that keeps it asks for another."""
GAUGED = 8
"""One in so many steps what a member keeps is looked at."""
ROUNDS = 10
"""In so many times D the group must recover."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to."""

    scenario: Scenario
    trace: str
    """A digest over every frame that arrived: the same scenario gives the same trace."""
    steps: int
    """How many inputs the stacks had."""
    simulated: int
    """How long it took, in simulated ns."""
    delivered: int
    views: int
    blocked: bool
    """In the end there were too few members to go on."""
    fired: tuple[Event, ...]
    """What really happened of what was to happen at a step of the protocol."""


class Run:
    """A group, and what happens to it."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.world = self.make_world()
        self.world.beat_loss = scenario.beat_loss
        self.world.on_input = self._stepped
        self.world.on_death = lambda node: self.monitor.die(node.incarnation)
        self.monitor: Monitor = Monitor(scenario.least)
        self.specs = parse_stack(scenario.stack, sound=False)  # a DROP below may be a bad network
        self.rng = Stream(scenario.seed, "run", "dice")
        self.applications: dict[int, Application] = {}
        """By incarnation: of all that ever were."""
        self.current: dict[str, Application] = {}
        """By name: the one that runs there, or ran last."""
        self.newest: View | None = None
        """The newest view that was installed anywhere."""
        self.healing = False
        self.fired: list[Event] = []
        self.on_change: Callable[[Application, Changed], None] = lambda application, change: None
        """Called with each change of a participant's or coordinator's state."""
        changes = sum(event.do not in ("cast", "lag") for event in scenario.events)
        self._views_max = 50 + VIEWS_PER_CHANGE * (scenario.size + changes)
        largest = max((event.size for event in scenario.events), default=0)
        self._largest = 16 * (largest + 64) + 2_048
        """The largest packet: what PACK puts into one."""
        self._passed: dict[Event, int] = {}
        self._marked = [event for event in scenario.events if event.mark]
        self.actions = Faults(self)
        self.recovery = Recovery(self)
        for number in range(scenario.size):
            self.start(str(number))

    def make_world(self) -> World:
        """Where it happens."""
        return World(self.scenario.seed, self.scenario.delays)

    # Processes.

    def start(self, name: str) -> Application:
        """A new process of that name: what an earlier one knew is lost."""
        scenario, number = self.scenario, int(name)
        generation = sum(each.process == name for each in self.applications.values())
        rng = Stream(scenario.seed, f"{name}/{generation}", "member")
        witness = scenario.witness and number == 0
        me = Member(f"sim:{name}", rng.draw(), witness=witness)
        config = StackConfig(
            "group",
            detection=scenario.detection,
            slow=scenario.slow,
        )
        stack = Stack(self.specs, config, me, rng.draw())
        application = Application(self, stack, name)
        stack.above = application
        stack.top.degree(scenario.least)
        host = f"host {scenario.hosts[number]}" if scenario.hosts else None
        application.node = self.world.add(name, stack, host)
        if witness and application.transfer is not None:
            application.transfer.silent = True
            if scenario.keeps:
                application.transfer.keep(least=KEPT_LEAST)
        application.stack.on_mark = lambda step: self._pass(application, step)
        application.membership.on_change = lambda change: self.on_change(application, change)
        self.applications[me.incarnation] = self.current[name] = application
        return application

    def node(self, name: str) -> Node:
        """The process of that name."""
        return self.world.nodes[f"sim:{name}"]

    def is_kept(self, view: View) -> bool:
        """Whether a witness in a view has kept the state."""
        keepers = [
            self.applications[member.incarnation].transfer.keeper
            for member in view.others
            if self.scenario.keeps and member.incarnation in self.applications
        ]
        return any(keeper is not None and keeper.whole for keeper in keepers)

    def living(self, view: View | None) -> list[Application]:
        """The members of a view that run."""
        if view is None:
            return []
        known = [self.applications[member.incarnation] for member in view.members]
        return [each for each in known if each.node.alive]

    def process_of(self, name: str) -> str | None:
        """The process that an event means: by its number, or by a role; None if there is none."""
        if name.isdigit():
            return name
        living = [each for each in self.living(self.newest) if not each.node.paused]
        if not living:
            return None
        if name == "sequencer":
            return living[0].process
        if name == "next":
            return living[min(1, len(living) - 1)].process
        if name == "youngest":
            return living[-1].process
        return min(living, key=lambda each: each.total.held).process

    # What the applications tell.

    def viewed(self, application: Application) -> None:
        """A view was installed."""
        view = application.entered
        assert view is not None
        if len(self.monitor.facts.views) > self._views_max:
            raise Violation(
                "I28", f"more than {self._views_max} views: faults make one each, or few"
            )
        if self.newest is None or view.identity > self.newest.identity:
            self.newest = view

    def exited(self, application: Application) -> None:
        """A member is out: one that was expelled comes back."""
        if not (application.exited or "").startswith("expelled"):
            return
        if 0 < self.scenario.settled <= self.world.now:
            raise Violation(
                "I28", f"{application.process} is out without a cause: {application.exited}"
            )
        if self.scenario.rejoins:
            later = self.world.now + self.rng.below(self.scenario.detection)
            self.world.at(later, lambda: self.actions.come_back(application))

    def holders(self, view: View, seqno: int) -> int:
        """How many members of a view hold the packet with that seqno, and all before it (H3)."""
        applications = self.applications
        count = 0
        for member in view.members:
            application = applications[member.incarnation]
            if application.total.held > seqno and application.transfer.complete:
                count += 1
        return count

    def _pass(self, application: Application, step: str) -> None:
        """A stack passes a step of the protocol."""
        if step in ("V2", "V3") and application.membership.view is not None:
            self.monitor.promise(application.me, application.membership.view.identity)
        if self.healing or not self._marked:
            return
        for event in self._marked:
            if event.mark != step or self.world.now < event.at or event in self.fired:
                continue
            if self.is_meant(event.node, application):
                self._passed[event] = self._passed.get(event, 0) + 1
                if self._passed[event] >= event.nth:
                    self.fired.append(event)
                    self.actions.do(event, application.process)

    def is_meant(self, name: str, application: Application) -> bool:
        """Whether an event that waits for a step means this process, which passes it."""
        total, membership = application.total, application.membership
        if name == "S":
            return bool(total.position == 0)
        if name == "P":
            return bool(total.position > 0 and total.dump()["unordered"])
        if name == "A":
            return bool(total.position > 0)
        if name == "C":
            return membership.agreement.coordinator.ballot is not None
        if name == "J":
            return not application.transfer.complete
        return not name or self.process_of(name) == application.process

    def _stepped(self, node: Node) -> None:
        application = self.applications[node.incarnation]
        if self.monitor.facts.broken is not None:
            raise self.monitor.facts.broken
        if application.errors:
            raise Violation("E1", f"at {node.name}: {application.errors[0]}")
        if self.world.steps % GAUGED == 0 and application.entered is not None:
            self._gauge(application)

    def _gauge(self, application: Application) -> None:
        """I27: what it keeps that is not stable."""
        total = application.total
        if total.name == "RING":
            return  # it keeps nothing beside the memory, which does not grow
        kept = total.dump()["history"]
        size_max = total.window_bytes + self._largest
        self.monitor.gauge(
            application.me, kept, 3 * total.window_packets, total.buffer.bytes, size_max
        )

    # The run.

    def run(self) -> Result:
        """Let it all happen; raises Violation if a promise was broken."""
        scenario, world = self.scenario, self.world
        try:
            self._schedule()
            if not world.run_for(scenario.safety, EVENTS_MAX):
                raise Violation("I28", f"more than {EVENTS_MAX} events while faults go on")
            blocked = self._heal()
        except Violation as error:
            error.add_note(f"at {world.now / MS:.3f} ms, event {world.events}, of {scenario}")
            raise error.with_traceback(None) from None  # it is the story that says how it came
        except Exception as error:  # noqa: BLE001 whatever a stack raises is a finding
            broken = Violation("E0", f"a stack raised {type(error).__name__}: {error}")
            broken.add_note(f"at {world.now / MS:.3f} ms, event {world.events}, of {scenario}")
            broken.add_note(traceback.format_exc(limit=-6))
            raise broken from None
        finally:
            self._release()
        views = len(self.monitor.facts.views)
        delivered, fired = self.monitor.delivered, tuple(self.fired)
        return Result(
            scenario, world.trace, world.steps, world.now, delivered, views, blocked, fired
        )

    def _release(self) -> None:
        """Close what members share memory by: a process makes thousands of runs, and has some 1,000 descriptors."""
        for application in self.applications.values():
            if application.order_in_memory is not None:
                application.order_in_memory.release()
        for application in self.applications.values():
            if application.stack.alarm is not None:
                application.stack.alarm.close()

    def _schedule(self) -> None:
        first = self.current["0"]
        first.creates = True
        first.node.call(partial(first.stack.join, ""))
        for event in self.scenario.events:
            if not event.mark:
                self.world.at(event.at, partial(self.actions.do, event))

    def _heal(self) -> bool:
        """The faults end; True if the group is blocked, as it must be."""
        self.healing = True
        self.actions.heal()
        if self._settles():
            self.monitor.finish(self.recovery.finished(), blocked=self.recovery.is_short())
            return False
        if self.recovery.is_excused():
            world, detection = self.world, self.scenario.detection
            if not world.run_for(longest_silence(detection) + 2 * detection, EVENTS_MAX):
                raise Violation("I28", f"more than {EVENTS_MAX} events after the faults")
        self.recovery.check_blocked()
        if not self.scenario.resets:
            return True
        self._reset()
        return False

    def _settles(self, meanwhile: Callable[[], None] = lambda: None) -> bool:
        """Let time pass until the group has recovered, for 10 D and what delays add to that.

        A small window makes each packet a round trip of its own, so pending calls count too.
        `meanwhile` is called each D/4.
        """
        scenario, world, delays = self.scenario, self.world, self.scenario.delays
        turns = 20 + 8 * self.recovery.backlog()
        slack = turns * (delays.least + delays.mean) + 20 * delays.connect
        end = world.now + ROUNDS * scenario.detection + slack + 2 * delays.timeout
        while world.now < end:
            if not world.run_for(scenario.detection // 4, EVENTS_MAX):
                raise Violation("I28", f"more than {EVENTS_MAX} events after the faults")
            if self.recovery.trouble() is None:
                return True
            meanwhile()
        return False

    def _reset(self) -> None:
        """The program says that the group is to go on with those that are left (A05)."""
        newest = self.recovery.newest_living()
        least, asker = self._choose_asker()
        if asker is None:
            return
        asker.failed, asked_at = None, -self.scenario.detection

        def ask() -> None:
            """As `group.reset()` does: again, if a change of view was under way, or nothing came.

            One that was about to leave is out by the reset, and others may still be blocked.
            """
            nonlocal least, asker, asked_at
            if asker is None or asker.exited is not None:
                least, asker = self._choose_asker()
            late = self.world.now - asked_at >= self.scenario.detection
            if asker is None or not asker.inside:
                return
            if asker.failed == UNDER_WAY or (asker.failed is None and late):
                asked_at, asker.failed = self.world.now, None
                asker.node.call(partial(asker.stack.reset, least))

        ask()
        if not self._settles(ask):
            raise Violation("I28", f"a reset of {newest} did not help: {self.recovery.trouble()}")
        self.monitor.finish(self.recovery.finished(), blocked=self.recovery.is_short())

    def _choose_asker(self) -> tuple[int, Application | None]:
        """How many members can go on, and the one that a program asks; None if none has the state."""
        living = self.recovery.present(self.recovery.newest_living())
        if not any(each.transfer.complete and not each.stack.me.witness for each in living):
            return 0, None
        # The program asks at a member that has let it begin: not at one that still waits for state.
        return len(living), next((each for each in living if each.inside), living[0])


def run(scenario: Scenario, watch: Callable[[Run], None] | None = None) -> Result:
    """Run a scenario; raises Violation if a promise was broken."""
    it = Run(scenario)
    if watch is not None:
        watch(it)
    return it.run()
