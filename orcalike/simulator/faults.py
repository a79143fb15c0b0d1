"""What an event of a scenario does to the group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from orcalike.simulator.application import Application
from orcalike.simulator.checkers.facts import body_of
from orcalike.simulator.checkers.monitor import Monitor
from orcalike.simulator.scenario import Event, Scenario
from orcalike.transport.drivers.sim import Node, Stream, World
from orcalike.transport.wire.message import Message


class Failing(Protocol):
    """A run, as far as faults take it."""

    scenario: Scenario
    world: World
    monitor: Monitor
    rng: Stream
    current: dict[str, Application]
    healing: bool

    def process_of(self, name: str) -> str | None:
        """The process that an event means; None if there is none."""

    def start(self, name: str) -> Application:
        """A new process of that name: what an earlier one knew is lost."""


class Faults:
    """One method for each kind of event."""

    def __init__(self, run: Failing) -> None:
        self.run = run
        self.world = run.world
        self.on_event: Callable[[Event, str], None] = lambda event, name: None
        """Called with each event, and with the process that it concerns."""

    def do(self, event: Event, passing: str = "") -> None:
        """Let an event happen; if its process passes a step, `passing` is that process."""
        name = passing or self.run.process_of(event.node)
        if name is not None and (not self.run.healing or event.do in ("join", "cast")):
            self.on_event(event, name)
            getattr(self, f"do_{event.do}")(event, self.run.current[name])

    def other(self, event: Event, target: Application) -> str:
        """The other process that an event means; the one itself if there is none."""
        return self.run.process_of(event.to) or target.process

    # The group's own life.

    def do_join(self, event: Event, target: Application) -> None:
        """Ask to be let in, again and again."""
        target.waits = True
        self.ask(target)

    def ask(self, target: Application) -> None:
        """Through some member's address; through another's where that leads nowhere."""
        if target.entered is not None or target.exited is not None or not target.node.alive:
            return
        run = self.run
        known = [
            each.process
            for each in run.current.values()
            if each is not target and each.inside and each.node.alive
        ]
        if known:
            through = f"sim:{known[run.rng.below(len(known))]}"
            target.failed = None
            target.node.call(lambda now: target.stack.join(through, now))
        pause = run.scenario.detection * (2 if known else 1) // 2
        run.world.at(run.world.now + pause, lambda: self.ask(target))

    def do_cast(self, event: Event, target: Application) -> None:
        """Cast, if it is in the group and has something to say."""
        node = target.node
        if not target.inside or target.leaves or target.stack.me.witness or not node.alive:
            return
        if node.paused or node.inbox:
            return  # a program that does not run casts nothing
        facts = self.run.monitor.facts
        for _ in range(event.count):
            if not node.alive:
                break
            body = body_of(target.me, facts.sent.get(target.me, 0) + 1, event.size)
            self.run.monitor.cast(target.me, body, event.degree)
            message: Any = Message(body)
            message.degree = event.degree
            node.call(partial(target.stack.cast, message))

    def do_leave(self, event: Event, target: Application) -> None:
        """Ask to leave."""
        if target.inside and not target.leaves and target.entered is not None:
            target.leaves = True
            self.run.monitor.leave(target.me)
            target.node.call(target.stack.leave)

    # Processes that fail.

    def do_crash(self, event: Event, target: Application) -> None:
        """Die: at once, or in the middle of the next output."""
        if event.mark or event.keep >= 0:
            target.node.doomed = max(event.keep, 0)
        else:
            self.world.crash(
                target.node,
                machine=event.way == "machine",
                soon=event.way == "soon",
                by_word=event.way == "word",
            )

    def do_gone(self, event: Event, target: Application) -> None:
        """A launcher tells other hosts that it is gone; it may live, or have been started again."""
        self.world.tell_gone(target.node)

    def do_restart(self, event: Event, target: Application) -> None:
        """A process that died, or left, is started again, and asks to be let in."""
        if not target.node.alive or target.exited is not None:
            self.come_back(target)

    def come_back(self, target: Application) -> None:
        """A new member at the same address."""
        if self.run.current[target.process] is target:
            self.world.stop(target.node)
            again = self.run.start(target.process)
            again.waits = True
            self.ask(again)

    def do_pause(self, event: Event, target: Application) -> None:
        """Stop, as SIGSTOP does."""
        self.world.pause(target.node, self._until(event))

    def do_hang(self, event: Event, target: Application) -> None:
        """Do nothing but beat."""
        self.world.hang(target.node, self._until(event))

    def do_slow(self, event: Event, target: Application) -> None:
        """Take long for each input."""
        target.node.slow_down(event.count)
        if event.span:
            self.world.at(self.world.now + event.span, lambda: target.node.slow_down(0))

    def do_starve(self, event: Event, target: Application) -> None:
        """Get no processor: beats do not go out or come in, and inputs take long."""
        node = target.node
        node.slow_down(event.count)
        node.starved.begin(self.world.now)
        if event.span:
            self.world.at(self.world.now + event.span, partial(self._feed, node))

    def _feed(self, node: Node) -> None:
        node.slow_down(0)
        node.starved.end(self.world.now)

    def do_hold(self, event: Event, target: Application) -> None:
        """Take what is delivered, and do not apply it for a while."""
        if target.inside:
            target.stack.top.credit(False)
            target.lags = True
            if event.span:
                self.world.at(self.world.now + event.span, lambda: self._apply(target))

    def _apply(self, target: Application) -> None:
        if target.lags:
            target.lags = False
            target.stack.top.credit(True)
            target.node.call(target.stack.expire)

    def do_reset(self, event: Event, target: Application) -> None:
        """The program says to go on with so many members (A05)."""
        if target.inside:
            target.node.call(partial(target.stack.reset, event.count))

    # Paths and links that fail.

    def do_cut(self, event: Event, target: Application) -> None:
        """Nothing gets from one to the other."""
        self._cut(target.process, self.other(event, target), event.span)

    def do_isolate(self, event: Event, target: Application) -> None:
        """Nothing gets in, or out, or neither."""
        for other in self.run.current:
            if other != target.process:
                if event.way != "out":
                    self._cut(other, target.process, event.span)
                if event.way != "in":
                    self._cut(target.process, other, event.span)

    def _cut(self, source: str, target: str, span: int) -> None:
        hosts = self.run.scenario.hosts
        if hosts and hosts[int(source)] == hosts[int(target)]:
            return  # within a host nothing is cut
        self.world.cut(source, target)
        if span:
            self.world.at(self.world.now + span, lambda: self.world.heal(source, target))

    def do_clog(self, event: Event, target: Application) -> None:
        """What is sent from one to the other takes long."""
        self.world.clog(target.process, self.other(event, target), self.world.now + event.span)

    def do_lag(self, event: Event, target: Application) -> None:
        """Every frame from one to the other takes so much longer from here on."""
        self.world.path(target.process, event.to).lag = event.span

    def do_jam(self, event: Event, target: Application) -> None:
        """What goes to it and comes from it takes long, one more and another less."""
        self._jam(target.process, event.way, event.count)
        if event.span:
            ends = partial(self._jam, target.process, event.way, 0)
            self.world.at(self.world.now + event.span, ends)

    def _jam(self, process: str, way: str, mean: int) -> None:
        for other in self.run.current:
            if other != process:
                if way != "out":
                    self.world.path(other, process).jam = mean
                if way != "in":
                    self.world.path(process, other).jam = mean

    def do_break(self, event: Event, target: Application) -> None:
        """The links between two break."""
        self.world.break_links(target.process, self.other(event, target))

    def do_half(self, event: Event, target: Application) -> None:
        """The links between two break, and only one of them learns of it."""
        self.world.break_links(target.process, self.other(event, target), one_end=True)

    def _until(self, event: Event) -> int | None:
        return self.world.now + event.span if event.span else None

    def heal(self) -> None:
        """The faults end; a process that is dead stays dead."""
        self.on_event(Event("heal"), "0")
        self.world.heal_all()
        self.world.beat_loss = 0.0
        for target in self.run.current.values():
            target.node.doomed = None
            self._feed(target.node)
            self.world.resume(target.node)
            self._apply(target)
