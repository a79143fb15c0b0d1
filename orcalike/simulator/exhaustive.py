"""Small scope: every order in which a few things can happen, with a crash at every point (G6).

What is under way on each link is a queue; at each step any queue may move, or a process may die. An
odometer goes through all choices, running each from the start. A process is a deterministic
machine, so its state is what it was given so far; if all processes have been given the same,
the rest is the same as well, and is not tried again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

from orcalike.simulator.checkers.facts import Violation
from orcalike.simulator.scenario import Event, Scenario
from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.sim import Delays, End, Node, World

STACK = "XFER:TOTAL:MBRSHIP:COM:sim"
FAR = 1 << 60
"""A detection time that does not come: links that break say which process is gone."""


class ChoosingWorld(World):
    """A world whose user says what happens next, and time stands still."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, Delays(0, 0, 0, 0, 0))
        self.pending: dict[str, deque[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self.given: dict[str, bytes] = {}
        """A digest of what each process was given so far."""

    def push(self, when: int, tie: int, event: Callable[..., None], *args: Any) -> None:
        """Queue it behind what its process, or its link, waits for already."""
        target = getattr(event, "__self__", None)
        if event.__name__ == "_expire":
            return  # time stands still
        if isinstance(target, End):
            key = f"{target.path.name}/{target.number}"
        elif isinstance(target, Node):
            key = target.name
        else:
            key = f"{event.__name__} {args[0].name if args else ''}"
        self.pending.setdefault(key, deque()).append((event, args))

    def go_on(self, key: str) -> None:
        """Let the first thing in that queue happen."""
        queue = self.pending[key]
        event, args = queue.popleft()
        if not queue:
            del self.pending[key]
        target = getattr(event, "__self__", None)
        name = target.node.name if isinstance(target, End) else key
        what = target.queue[0] if isinstance(target, End) and target.queue else ""
        self.note_given(name, f"{key} {event.__name__} {what!r}")
        self.events += 1
        event(*args)

    def note_given(self, name: str, what: str) -> None:
        """A process was given something."""
        digest = blake2b(self.given.get(name, b""), digest_size=8)
        digest.update(what.encode())
        self.given[name] = digest.digest()


@dataclass
class Odometer:
    """Goes through all sequences of choices."""

    digits: list[tuple[int, int]] = field(default_factory=list)
    """What was chosen, and out of how many."""
    at: int = 0

    def choose(self, count: int) -> int:
        """One of so many."""
        if self.at == len(self.digits):
            self.digits.append((0, count))
        chosen, _ = self.digits[self.at]
        self.at += 1
        return chosen

    @property
    def is_new(self) -> bool:
        """Whether the next choice was never made in this place."""
        return self.at >= len(self.digits)

    def turn(self) -> bool:
        """To the next sequence; False if there is none."""
        self.at = 0
        while self.digits:
            chosen, count = self.digits.pop()
            if chosen + 1 < count:
                self.digits.append((chosen + 1, count))
                return True
        return False


@dataclass(slots=True)
class Explored:
    """What was tried."""

    runs: int = 0
    states: int = 0
    steps: int = 0
    whole: bool = False
    """All there is was tried."""


class SmallScope(Run):
    """A few processes that have formed a group, and what is left to choose."""

    def __init__(self, size: int, casts: tuple[Event, ...], crashes: int) -> None:
        scenario = Scenario(
            0,
            size,
            casts,
            0,
            stack=STACK,
            detection=FAR,
            slow=FAR,
            rejoins=False,
        )
        self.casts = list(casts)
        self.crashes = crashes
        self.formed = False
        super().__init__(replace(scenario, hosts=(0,) * size))

    def make_world(self) -> World:
        """A world of choices."""
        return ChoosingWorld(0)

    @property
    def choosing(self) -> ChoosingWorld:
        """Its world."""
        assert isinstance(self.world, ChoosingWorld)
        return self.world

    def form(self) -> None:
        """Make the group, in one certain order."""
        first = self.current["0"]
        first.creates = True
        first.node.call(partial(first.stack.join, ""))
        for number in range(1, self.scenario.size):
            joiner = self.current[str(number)]
            joiner.node.call(partial(joiner.stack.join, "sim:0"))
            self.settle()
        self.formed = True

    def settle(self) -> None:
        """Let everything happen that is under way, in one certain order."""
        world = self.choosing
        while world.pending:
            world.go_on(min(world.pending))

    def options(self) -> list[tuple[str, Any]]:
        """What may happen next."""
        options: list[tuple[str, Any]] = [("go on", key) for key in sorted(self.choosing.pending)]
        options += [("cast", self.casts[0])] if self.casts else []
        if self.crashes:
            options += [
                ("crash", (name, keep))
                for name in sorted(self.current)
                if self.current[name].node.alive
                for keep in (-1, 0, 1)
            ]
        return options

    def take(self, option: tuple[str, Any]) -> None:
        """Let it happen."""
        kind, what = option
        if kind == "go on":
            self.choosing.go_on(what)
        elif kind == "cast":
            event = self.casts.pop(0)
            self.choosing.note_given(event.node, str(event))
            self.actions.do(event)
        else:
            name, keep = what
            self.crashes -= 1
            self.choosing.note_given(name, f"crash {keep}")
            self.world.crash(self.node(name), keep=None if keep < 0 else keep)

    def state(self) -> bytes:
        """All that is to come follows from this."""
        given = sorted(self.choosing.given.items())
        return blake2b(
            repr((given, len(self.casts), self.crashes)).encode(), digest_size=12
        ).digest()

    def end(self) -> None:
        """Nothing can happen any more: has the group recovered, or is it blocked as it must?"""
        for process in self.current.values():
            process.node.doomed = None
        trouble = self.recovery.trouble()
        if trouble is None:
            self.monitor.finish([each.me for each in self.living(self.recovery.newest_living())])
        else:
            self.recovery.check_blocked()


def explore(
    size: int,
    casts: tuple[Event, ...],
    crashes: int = 1,
    runs_max: int = 1_000_000,
) -> Explored:
    """Try every order of `casts`, of their frames and of so many crashes.

    Raises Violation if an invariant is broken, with the choices that lead there.
    """
    odometer, seen, explored = Odometer(), set[bytes](), Explored()
    while explored.runs < runs_max:
        explored.runs += 1
        scope = SmallScope(size, casts, crashes)
        scope.form()
        taken: list[str] = []
        try:
            while options := scope.options():
                if odometer.is_new:
                    state = scope.state()
                    if state in seen:
                        break
                    seen.add(state)
                option = options[odometer.choose(len(options))]
                taken.append(f"{option[0]} {option[1]}")
                scope.take(option)
            else:
                scope.end()
        except Violation as violation:
            violation.add_note("after: " + "; ".join(taken))
            raise
        explored.steps += scope.world.steps
        if not odometer.turn():
            explored.whole = True
            break
    explored.states = len(seen)
    return explored
