"""What an event of a scenario does to the group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from orcalike.testing.history import body_of
from orcalike.testing.scenario import Event
from orcalike.transport.wire.message import Message

if TYPE_CHECKING:
    from orcalike.testing.application import Application
    from orcalike.testing.run import Run
    from orcalike.transport.drivers.sim import Node


class Actions:
    """One method for each kind of event."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.world = run.world
        self.told: Callable[[Event, str], None] = lambda event, name: None
        """Told of each event, and of whom it concerns."""

    def do(self, event: Event, passing: str = "") -> None:
        """Let an event happen; where its process passes a step, `passing` is that process."""
        name = passing or self.run.who(event.node)
        if name is not None and (not self.run.healing or event.do in ("join", "cast")):
            self.told(event, name)
            getattr(self, f"do_{event.do}")(event, self.run.current[name])

    def other(self, event: Event, who: Application) -> str:
        """The other process that an event means; the one itself where there is none."""
        return self.run.who(event.to) or who.process

    # The group's own life.

    def do_join(self, event: Event, who: Application) -> None:
        """Ask to be let in, again and again."""
        who.waits = True
        self.ask(who)

    def ask(self, who: Application) -> None:
        """Through some member's address; through another's where that leads nowhere."""
        if who.entered is not None or who.exited is not None or not who.node.alive:
            return
        run = self.run
        known = [
            each.process
            for each in run.current.values()
            if each is not who and each.inside and each.node.alive
        ]
        if known:
            through = f"sim:{known[run.dice.below(len(known))]}"
            who.failed = None
            who.node.call(lambda now: who.stack.join(through, now))
        pause = run.scenario.detection * (2 if known else 1) // 2
        run.world.at(run.world.now + pause, lambda: self.ask(who))

    def do_cast(self, event: Event, who: Application) -> None:
        """Cast, if it is in the group and has something to say."""
        node = who.node
        if not who.inside or who.leaves or who.stack.me.witness or not node.alive:
            return
        if node.paused or node.inbox:
            return  # a program that does not run casts nothing
        facts = self.run.judge.facts
        for _ in range(event.count):
            if not node.alive:
                break
            body = body_of(who.me, facts.sent.get(who.me, 0) + 1, event.size)
            self.run.judge.cast(who.me, body, event.degree)
            message: Any = Message(body)
            message.degree = event.degree
            node.call(partial(who.stack.cast, message))

    def do_leave(self, event: Event, who: Application) -> None:
        """Ask to leave."""
        if who.inside and not who.leaves and who.entered is not None:
            who.leaves = True
            self.run.judge.leave(who.me)
            who.node.call(who.stack.leave)

    # Processes that fail.

    def do_crash(self, event: Event, who: Application) -> None:
        """Die: at once, or in the middle of the next output."""
        if event.mark or event.keep >= 0:
            who.node.doomed = max(event.keep, 0)
        else:
            self.world.crash(who.node, machine=event.way == "machine", soon=event.way == "soon")

    def do_restart(self, event: Event, who: Application) -> None:
        """A process that died, or left, is started again, and asks to be let in."""
        if not who.node.alive or who.exited is not None:
            self.come_back(who)

    def come_back(self, who: Application) -> None:
        """A new member at the same address."""
        if self.run.current[who.process] is who:
            self.world.stop(who.node)
            again = self.run.start(who.process)
            again.waits = True
            self.ask(again)

    def do_pause(self, event: Event, who: Application) -> None:
        """Stop, as SIGSTOP does."""
        self.world.pause(who.node, self._until(event))

    def do_hang(self, event: Event, who: Application) -> None:
        """Do nothing but beat."""
        self.world.hang(who.node, self._until(event))

    def do_slow(self, event: Event, who: Application) -> None:
        """Take long for each input."""
        who.node.slow_down(event.count)
        if event.span:
            self.world.at(self.world.now + event.span, lambda: who.node.slow_down(0))

    def do_starve(self, event: Event, who: Application) -> None:
        """Get no processor: beats do not go out or come in, and inputs take long."""
        node = who.node
        node.slow_down(event.count)
        node.starved.begin(self.world.now)
        if event.span:
            self.world.at(self.world.now + event.span, partial(self._feed, node))

    def _feed(self, node: Node) -> None:
        node.slow_down(0)
        node.starved.end(self.world.now)

    def do_hold(self, event: Event, who: Application) -> None:
        """Take what is delivered, and do not apply it for a while."""
        if who.inside:
            who.stack.top.credit(False)
            who.lags = True
            if event.span:
                self.world.at(self.world.now + event.span, lambda: self._apply(who))

    def _apply(self, who: Application) -> None:
        if who.lags:
            who.lags = False
            who.stack.top.credit(True)
            who.node.call(who.stack.expire)

    def do_reset(self, event: Event, who: Application) -> None:
        """The program says to go on with so many members (A05)."""
        if who.inside:
            who.node.call(partial(who.stack.reset, event.count))

    # Paths and links that fail.

    def do_cut(self, event: Event, who: Application) -> None:
        """Nothing gets from one to the other."""
        self._cut(who.process, self.other(event, who), event.span)

    def do_isolate(self, event: Event, who: Application) -> None:
        """Nothing gets in, or out, or neither."""
        for other in self.run.current:
            if other != who.process:
                if event.way != "out":
                    self._cut(other, who.process, event.span)
                if event.way != "in":
                    self._cut(who.process, other, event.span)

    def _cut(self, source: str, target: str, span: int) -> None:
        hosts = self.run.scenario.hosts
        if hosts and hosts[int(source)] == hosts[int(target)]:
            return  # within a host nothing is cut
        self.world.cut(source, target)
        if span:
            self.world.at(self.world.now + span, lambda: self.world.heal(source, target))

    def do_clog(self, event: Event, who: Application) -> None:
        """What is sent from one to the other takes long."""
        self.world.clog(who.process, self.other(event, who), self.world.now + event.span)

    def do_lag(self, event: Event, who: Application) -> None:
        """Every frame from one to the other takes so much longer from here on."""
        self.world.path(who.process, event.to).lag = event.span

    def do_jam(self, event: Event, who: Application) -> None:
        """What goes to it and comes from it takes long, one more and another less."""
        self._jam(who.process, event.way, event.count)
        if event.span:
            ends = partial(self._jam, who.process, event.way, 0)
            self.world.at(self.world.now + event.span, ends)

    def _jam(self, process: str, way: str, mean: int) -> None:
        for other in self.run.current:
            if other != process:
                if way != "out":
                    self.world.path(other, process).jam = mean
                if way != "in":
                    self.world.path(process, other).jam = mean

    def do_break(self, event: Event, who: Application) -> None:
        """The links between two break."""
        self.world.break_links(who.process, self.other(event, who))

    def do_half(self, event: Event, who: Application) -> None:
        """The links between two break, and only one of them learns of it."""
        self.world.break_links(who.process, self.other(event, who), one_end=True)

    def _until(self, event: Event) -> int | None:
        return self.world.now + event.span if event.span else None

    def heal(self) -> None:
        """The faults end; who is dead stays dead."""
        self.told(Event("heal"), "0")
        self.world.heal_all()
        self.world.beat_loss = 0.0
        for who in self.run.current.values():
            who.node.doomed = None
            self._feed(who.node)
            self.world.resume(who.node)
            self._apply(who)
