"""Shrinking: the smallest scenario that still breaks the same invariant.

Every process, path and purpose draws from a stream of its own, so what is taken out of a scenario
leaves the rest as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from orcalike.simulator.checkers.facts import Violation
from orcalike.simulator.scenario import FAULTS, Event, Scenario
from orcalike.simulator.simulation import Run
from orcalike.transport.drivers.sim import Delays

FindViolation = Callable[[Scenario], Violation | None]
"""What a scenario breaks, if anything."""


def violation_of(scenario: Scenario) -> Violation | None:
    """Run a scenario; what it breaks, if anything."""
    try:
        Run(scenario).run()
    except Violation as violation:
        return violation
    return None


@dataclass
class Shrinker:
    """Makes one scenario smaller as long as it breaks the same invariant."""

    scenario: Scenario
    id: str
    """Of the invariant."""
    find_violation: FindViolation = violation_of
    keep_stack: bool = False
    """The stack stays as it is."""
    tries_max: int = 2_000
    tries: int = 0
    progress: Callable[[Scenario, int], None] = lambda scenario, tries: None
    """Called with each smaller scenario."""

    def shrink(self) -> Scenario:
        """The smallest that was found."""
        before = None
        while before != self.scenario and self.tries < self.tries_max:
            before = self.scenario
            self._drop_kinds()
            self._drop_processes()
            self._drop_events()
            self._simplify()
        return self.scenario

    def _try(self, candidate: Scenario) -> bool:
        """Take the candidate if it breaks the same invariant."""
        if candidate == self.scenario or self.tries >= self.tries_max:
            return False
        self.tries += 1
        violation = self.find_violation(candidate)
        if violation is None or violation.id != self.id:
            return False
        self.scenario = candidate
        self.progress(candidate, self.tries)
        return True

    def _drop_kinds(self) -> None:
        """Whole families of faults."""
        for kind in sorted(FAULTS):
            rest = [event for event in self.scenario.events if event.do != kind]
            self._try(self.scenario.with_events(rest))

    def _drop_processes(self) -> None:
        """Whole processes, the youngest first; the first makes the group."""
        for number in range(self.scenario.size - 1, 0, -1):
            self._try(without_process(self.scenario, number))

    def _drop_events(self) -> None:
        """Events in ever smaller blocks (Zeller's ddmin)."""
        block = len(self.scenario.events) // 2
        while block:
            start = 0
            while start < len(self.scenario.events):
                events = self.scenario.events
                if not self._try(
                    self.scenario.with_events(events[:start] + events[start + block :])
                ):
                    start += block
            block //= 2

    def _simplify(self) -> None:
        """Everything as it is by default, one thing at a time."""
        for change in self._changes():
            self._try(replace(self.scenario, **change))  # type: ignore[arg-type]
        for at in range(len(self.scenario.events)):
            for event in simpler(self.scenario.events[at]):
                events = list(self.scenario.events)
                events[at] = event
                self._try(self.scenario.with_events(events))

    def _changes(self) -> Iterator[dict[str, object]]:
        now = self.scenario
        if not self.keep_stack:
            yield {"stack": "XFER:TOTAL:MBRSHIP:COM:sim"}
        yield {
            "stack": ":".join(
                part for part in now.stack.split(":") if part[:4] not in ("DROP", "PACK")
            )
        }
        yield {"hosts": ()}
        yield {"witness": False}
        yield {"beat_loss": 0.0}
        yield {"rejoins": False}
        yield {"resets": False}
        yield {"piece": 1000}
        yield {"delays": Delays(now.delays.least, 0, now.delays.connect, 0, now.delays.timeout)}
        yield {"delays": replace(now.delays, heavy=0)}
        last = max((event.at for event in now.events), default=0)
        for span in (now.detection // 10, now.detection, 2 * now.detection):
            if last + span < now.safety:
                yield {"safety": last + span}


def without_process(scenario: Scenario, number: int) -> Scenario:
    """The same without one process, and all that concerns it."""

    def renamed(name: str) -> str:
        return str(int(name) - 1) if name.isdigit() and int(name) > number else name

    events = [
        replace(event, node=renamed(event.node), to=renamed(event.to))
        for event in scenario.events
        if str(number) not in (event.node, event.to)
    ]
    hosts = scenario.hosts[:number] + scenario.hosts[number + 1 :]
    return replace(scenario, size=scenario.size - 1, hosts=hosts, events=tuple(events))


def simpler(event: Event) -> Iterator[Event]:
    """Simpler forms of an event."""
    if event.do == "cast":
        if event.count > 1:
            yield replace(event, count=1)
            yield replace(event, count=event.count // 2)
        yield replace(event, size=0)
        if event.degree > 1:
            yield replace(event, degree=1)
    if event.do == "crash" and (event.keep > 0 or event.way):
        yield replace(event, keep=-1, way="")
        yield replace(event, keep=0, way="")
    if event.nth > 1:
        yield replace(event, nth=1)


def shrink(
    scenario: Scenario,
    id_: str,
    *,
    find_violation: FindViolation = violation_of,
    keep_stack: bool = False,
    progress: Callable[[Scenario, int], None] | None = None,
) -> Scenario:
    """The smallest scenario that was found to break the same invariant."""
    it = Shrinker(scenario, id_, find_violation, keep_stack)
    if progress is not None:
        it.progress = progress
    return it.shrink()


__all__: Sequence[str] = ["Shrinker", "shrink", "violation_of", "without_process"]
