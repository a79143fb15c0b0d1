"""Scenarios: all that happens to a simulated group, as a list that can be kept in a file.

A scenario holds what a seed stood for when it was drawn, so it can be run again after the drawing
has changed, and made smaller one event at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

from orcalike.simulator.checkers.facts import ALL, MAJORITY
from orcalike.transport.drivers.sim import Delays
from orcalike.transport.wording import counted

VERSION = 1
"""Of the files."""

MS = 1_000_000
"""A millisecond, in ns."""

ROLES = ("sequencer", "next", "youngest", "least")
"""What an event may name instead of a process: which one that is, is seen when it happens."""

KINDS = frozenset(
    [
        "join",
        "cast",
        "leave",
        "crash",
        "gone",
        "restart",
        "pause",
        "hang",
        "cut",
        "isolate",
        "clog",
        "break",
        "half",
        "slow",
        "hold",
        "lag",
        "jam",
        "starve",
        "reset",
    ]
)
"""What may happen; `Run` has a method for each."""

FAULTS = KINDS - {"join", "cast", "leave"}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens at a time, or when a process passes a step of the protocol."""

    do: str
    at: int = 0
    """When, in ns. With a mark: not before that."""
    node: str = ""
    """To which process: its number, or a role; with a mark, a role of `Run.is_meant` as well."""
    to: str = ""
    """The other process, if there are two: its number, or a role."""
    span: int = 0
    """How long it lasts, in ns; 0 until the faults end."""
    count: int = 1
    """How many casts; how much a slow or starved process takes for an input, in ns; how long frames
    take on top, on average, in a jam, in ns; how many members a reset asks for."""
    size: int = 0
    """Of a cast's body."""
    degree: int = 0
    """Of a cast."""
    keep: int = -1
    """Of a crash: how many frames of the next output get out; -1 dies at once."""
    way: str = ""
    """Of an isolation or a jam: "in", "out" or "" for both. Of a crash: "machine" for all of it,
    "soon" if the processes of its host know of it before they have read what it sent, "word" if a
    launcher tells all: those of its host for certain, the others as a suspicion."""
    mark: str = ""
    """A step (docs/internals/failpoints.md): it happens when that is passed, by `node` if that is given ..."""
    nth: int = 1
    """... for the n-th time."""

    def __str__(self) -> str:
        words = [self.do, self.node, *(["to", self.to] if self.to else [])]
        default = Event(self.do)
        for name in ("span", "count", "size", "degree", "keep", "way"):
            if getattr(self, name) != getattr(default, name):
                words.append(f"{name}={getattr(self, name)}")
        when = f"at {self.mark} ({self.nth}.)" if self.mark else f"{self.at / MS:.3f} ms"
        return f"{when}: {' '.join(words)}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group, the world that it lives in, and what happens."""

    seed: int
    size: int
    """How many processes there are; the first makes the group."""
    events: tuple[Event, ...]
    safety: int
    """The faults end then, ns."""
    stack: str = "PACK:XFER:TOTAL:MBRSHIP:COM:sim"
    witness: bool = False
    """The first is a witness."""
    keeps: bool = False
    """It keeps the state, for members that come when all that had it are gone."""
    hosts: tuple[int, ...] = ()
    """On which host each runs; all on hosts of their own if this is empty."""
    delays: Delays = field(default_factory=Delays)
    beat_loss: float = 0.0
    detection: int = 500 * MS
    slow: int = 60_000 * MS
    piece: int = 8
    """How many casts a piece of state tells of."""
    rejoins: bool = True
    """A process that is expelled comes back as a new member."""
    resets: bool = False
    """A group that is blocked in the end is reset."""
    settled: int = 0
    """From then on no member that runs is expelled, ns; 0 if any may be."""

    @property
    def least(self) -> int:
        """R: the least degree of 1 or more (H2); 0 if there is none."""
        degrees = {event.degree for event in self.events if event.do == "cast"} - {0}
        numbers = degrees - {MAJORITY, ALL}
        return min(numbers or degrees, default=0)

    def with_events(self, events: Iterable[Event]) -> Scenario:
        """The same with other events."""
        return replace(self, events=tuple(events))

    def to_json(self) -> str:
        """As a file; an event is a line."""
        head = {name: value for name, value in _given(self).items() if name != "events"}
        lines = ",\n    ".join(json.dumps(_given(event)) for event in self.events)
        text = json.dumps({"version": VERSION, **head}, indent=2)
        return f'{text[:-2]},\n  "events": [\n    {lines}\n  ]\n}}\n'

    @classmethod
    def from_json(cls, text: str) -> Scenario:
        """From what `to_json` made; raises ValueError if it is anything else."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("version", None) != VERSION:
            raise ValueError(f"not a scenario of version {VERSION}")
        if "events" not in data:
            raise ValueError("not a scenario: it has no events")
        try:
            events = tuple(Event(**event) for event in data.pop("events"))
            delays = Delays(**data.pop("delays", {}))
            data["hosts"] = tuple(data.get("hosts", ()))
            scenario = cls(events=events, delays=delays, **data)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a scenario: {error}") from None
        things: list[Scenario | Delays | Event] = [scenario, delays, *events]
        for thing in things:
            _check(thing)
        unknown = {event.do for event in events} - KINDS
        if unknown:
            raise ValueError(f"a scenario has no {', '.join(sorted(unknown))}")
        if scenario.size < 1 or not all(type(host) is int for host in scenario.hosts):
            raise ValueError("not a scenario: it has 1 process at the least, and hosts are numbers")
        return scenario

    def __str__(self) -> str:
        witness = ", the first a witness" if self.witness else ""
        witness += " that keeps the state" if self.witness and self.keeps else ""
        members = f"{counted(self.size, 'member')}{witness}"
        faults = sum(event.do in FAULTS for event in self.events)
        casts = sum(event.count for event in self.events if event.do == "cast")
        events = f"{counted(casts, 'cast')}, {counted(faults, 'fault')}"
        return f"seed {self.seed}: {members}, {events}; {self.stack}"


_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
}


def _check(thing: Event | Scenario | Delays) -> None:
    """Raise ValueError if a field has a value of another type than its own."""
    for each in fields(thing):
        value = getattr(thing, each.name)
        if type(value) not in _PLAIN.get(str(each.type), (type(value),)):
            raise ValueError(f"not a scenario: {each.name} is {value!r}, and must be {each.type}")


def _given(thing: Event | Scenario) -> dict[str, Any]:
    """The fields that are not as they are by default."""
    given = {}
    for each in fields(thing):
        value = getattr(thing, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != default:
            given[each.name] = asdict(value) if isinstance(value, Delays) else value
    return given
