"""What happens in a run, line by line or as a diagram, to look for the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgpack

from orcalike.simulator.application import Application
from orcalike.simulator.checkers.facts import Installed, Key, number_of
from orcalike.simulator.scenario import MS, Event
from orcalike.simulator.simulation import Run
from orcalike.transport.application_state import State
from orcalike.transport.drivers.sim import End
from orcalike.transport.errors import ProtocolError
from orcalike.transport.membership import effects, messages
from orcalike.transport.membership.effects import Changed, Effect
from orcalike.transport.membership.messages import ControlMessage, Value
from orcalike.transport.view import POSITION_BITS, Member, View
from orcalike.transport.wording import counted

KINDS = {1: "REQUEST", 2: "ORDERED", 3: "EXPECT", 4: "ACCEPT", 5: "state"}
"""TOTAL's."""
KINDS_IN_MEMORY = {1: "OFFER", 2: "UNREADABLE", 3: "APART", 4: "state"}
"""RING's."""
LINES_MAX = 300
"""A diagram shows the last so many of a longer story."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened; a frame if there is a source."""

    when: int
    process: str
    what: str
    source: str = ""

    def __str__(self) -> str:
        process = f"{self.source} > {self.process}" if self.source else self.process
        return f"{self.when / MS:12.3f} ms  {process:8} {self.what}"


class Transcript:
    """Listens to a run. Make it before the run begins."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.lines: list[Line] = []
        run.world.on_frame = self._frame
        run.actions.on_event = self._event
        run.monitor.observer = self._observe
        run.on_change = self._changed

    def _add(self, process: str, what: str, source: str = "") -> None:
        self.lines.append(Line(self.run.world.now, process, what, source))

    def _frame(self, end: End, frame: bytes) -> None:
        names = {each: it.process for each, it in self.run.applications.items()}
        receiver = self.run.applications[end.node.incarnation]
        kinds = KINDS if receiver.order_in_memory is None else KINDS_IN_MEMORY
        self._add(end.node.name, describe(frame, names, kinds), end.peer.node.name)

    def _event(self, event: Event, name: str) -> None:
        if event.do != "lag":
            self._add(name, f"*** {event}")

    def _changed(self, application: Application, change: Changed) -> None:
        """A participant or coordinator is in another state."""
        agreement = application.membership.agreement
        ballot = agreement.participant.promised
        if change.role == "coordinator":
            ballot = agreement.coordinator.ballot.number if agreement.coordinator.ballot else 0
        under = f" (ballot {ballot_text(ballot)})" if ballot else ""
        self._add(application.process, f"{change_text(change)}{under}")

    def _observe(self, member: int, what: object) -> None:
        application = self.run.applications[member]
        match what:
            case Installed(identity, members):
                names = " ".join(self.run.applications[each].process for each in members)
                self._add(application.process, f"installs {identity}: {names}")
            case (int(source), bytes(body), tuple(key)):
                self._add(application.process, self._delivered(source, body, key))
            case _:
                self._add(application.process, str(what))

    def _delivered(self, source: int, body: bytes, key: Key) -> str:
        name = self.run.applications[source].process
        return f"delivers {key[0]}.{key[1]}: cast {number_of(body)} of {name}"

    def diagram(self) -> str:
        """A sequence diagram, as Mermaid draws them."""
        return "\n".join(self._mermaid()) + "\n"

    def _mermaid(self) -> Iterator[str]:
        yield "sequenceDiagram"
        for number in range(self.run.scenario.size):
            yield f"    participant {number}"
        if len(self.lines) > LINES_MAX:
            yield f"    Note over 0: left out: {counted(len(self.lines) - LINES_MAX, 'line')} before this"
        for line in self.lines[-LINES_MAX:]:
            what = line.what.replace(";", ",").replace("#", "no. ")
            if line.source:
                yield f"    {line.source}->>{line.process}: {what}"
            else:
                yield f"    Note over {line.process}: {line.when / MS:.3f} ms {what}"


def describe(
    frame: bytes, names: Mapping[int, str] | None = None, kinds: Mapping[int, str] = KINDS
) -> str:
    """A frame in a few words; its length if it cannot be read. `names` are of incarnations."""
    try:
        return _describe(frame, names or {}, kinds)
    except (ValueError, LookupError, TypeError, ProtocolError):
        return counted(len(frame), "byte")


def _describe(frame: bytes, names: Mapping[int, str], kinds: Mapping[int, str]) -> str:
    if frame[6] == 1:
        return "HELLO"
    key = int.from_bytes(frame[8:16], "little")
    if key >> 63:
        said = msgpack.unpackb(frame[16:], strict_map_key=False)
        return describe_control(messages.unpack(said), names)
    view = f"v{key >> 24 & 0xFFFFFFFF}"
    kind = kinds.get(frame[16], "?")
    if kind == "state" or kinds is KINDS_IN_MEMORY:
        return f"{view} {kind}"
    counter, number = (int.from_bytes(frame[i : i + 8], "little") for i in (24, 32))
    place = int.from_bytes(frame[18:20], "little")
    if kind in ("EXPECT", "ACCEPT"):
        return f"{view} {kind} {number}"
    return f"{view} {kind} {number}: packet {counter} of place {place}, degree {frame[17]}"


def describe_control(message: ControlMessage, names: Mapping[int, str]) -> str:
    """The kind of a control message, and its fields by name, but for those that are empty."""
    known: list[tuple[str, Any]] = list(zip(message.names(), message.values(), strict=True))
    shown = [f"{name}={_shown(name, value, names)}" for name, value in known if _is_said(value)]
    return " ".join([message.kind, *shown])


def change_text(change: Changed) -> str:
    """A change of state in a line."""
    return f"{change.role} {change.before} -> {change.after}: {change.cause}"


def describe_effect(effect: Effect, names: Mapping[int, str], view: View) -> str:
    """What follows from a step of the agreement in `view`, in a few words."""
    match effect:
        case Changed():
            return change_text(effect)
        case effects.Send(position, message):
            return f"send to {_shown('', view.members[position], names)}: {describe_control(message, names)}"
        case effects.Contact(address, message):
            return f"contact {address}: {describe_control(message, names)}"
        case effects.Mark(step):
            return f"failpoint {step}"
        case effects.InstallView(after, cut):
            return f"install {_shown('', after, names)}+{len(cut)}B"
        case effects.GoOut(after, _):
            return f"go out, as others went on with {_shown('', after, names)}"
        case effects.Grant(True, (_, *_) as without):
            left_out = (_shown("incarnation", each, names) for each in without)
            return f"grant leases, but not to {', '.join(left_out)}"
        case effects.Grant(granting):
            return "grant leases" if granting else "grant no more leases"
        case effects.Wake(at):
            return f"wake at {at} ns"
        case effects.Seek(member):
            return f"seek {_shown('', member, names)}"
        case effects.ReportBlocked(missing, rule):
            waited = ",".join(_shown("", member, names) for member in missing)
            return f"report blocked: {rule}; waiting for {waited}"
        case effects.RefuseReset(why):
            return f"refuse reset: {why}"
        case effects.Refuse(error):
            return f"refuse: {error}"
        case effects.Supply(piece):
            return f"supply {len(piece)}B"
    return type(effect).__name__.lower()


def _is_said(value: object) -> bool:
    return value is not None and value is not False and value != () and value != {} and value != b""


def ballot_text(ballot: int) -> str:
    """A ballot as people read it: its round, and the position of the member that leads it."""
    return f"{ballot >> POSITION_BITS}.{ballot & (1 << POSITION_BITS) - 1}"


def _shown(name: str, value: Any, names: Mapping[int, str]) -> str:
    match value:
        case State():
            return value.name
        case int() if name == "ballot":
            return ballot_text(value)
        case int() if name == "incarnation":
            return names.get(value, str(value))
        case bytes():
            return f"{len(value)}B"
        case Member():
            return value.address.removeprefix("sim:")
        case View():
            members = ",".join(_shown("", each, names) for each in value.members)
            return f"v{value.number}/{ballot_text(value.ballot)}[{members}]"
        case Value(view, cut):
            return f"{_shown('', view, names)}+{len(cut)}B"
        case (int(ballot), Value() as accepted):
            return f"{ballot_text(ballot)}:{_shown('', accepted, names)}"
        case tuple() if name == "view":
            return f"v{value[1]}/{ballot_text(value[2])}"
        case tuple():
            return ",".join(names.get(each, str(each)) for each in value)
        case str():
            return repr(value)
    return str(value)
