"""What ran at each object: I18 to I21 and I25, and the results, by models.

The runs of one object at one member are an unbroken part of the object's own history, which begins
with `__init__`; a joiner's part begins where its state was taken. The parts are laid over each
other, and so each read and each digest has its position: how many operations had run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orcalike.history_check.models import Model, ModelOf, Refused
from orcalike.history_check.order import Canon
from orcalike.history_check.records import (
    History,
    MessageId,
    Place,
    Record,
    Violation,
    invocations,
    outcomes,
    place_of,
)
from orcalike.transport.wording import counted


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of an operation, as every member has it."""

    message: MessageId
    operation: str
    outcome: str
    """The hash of the result, or the exception."""


@dataclass
class Part:
    """What one member has of an object's history."""

    history: History
    runs: list[Ran] = field(default_factory=list)
    looks: list[tuple[int, Record]] = field(default_factory=list)
    """Reads and digests, after how many of the runs."""
    begins: int | None = None
    """The position of the first run, once that is known."""


@dataclass
class Timeline:
    """An object's whole history, from all parts."""

    name: str
    runs: list[Ran] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


def timelines(histories: list[History], canon: Canon) -> tuple[list[Timeline], list[Violation]]:
    """The history of each object, and where parts of it do not fit together."""
    parts: dict[str, list[Part]] = defaultdict(list)
    for history in sorted(histories, key=lambda h: (-h.lineage, not h.left, h.incarnation)):
        for name, part in _parts(history, canon).items():
            parts[name].append(part)
    violations: list[Violation] = []
    found = []
    for name, theirs in sorted(parts.items()):
        timeline = Timeline(name)
        found.append(timeline)
        violations += _lay(timeline, theirs, canon)
    return found, violations


def _parts(history: History, canon: Canon) -> dict[str, Part]:
    """A member's part of each object; what is lost is left out."""
    parts: dict[str, Part] = defaultdict(lambda: Part(history))
    end = canon.lost.get(history.incarnation)
    view, hooks = 0, 0
    for record in history.of("view", "deliver", "apply", "read", "state"):
        match record["kind"]:
            case "view":
                view, hooks = record["identity"][1], 0
            case "deliver":
                if end is not None and place_of(record) >= end:
                    break
            case "apply":
                message = (record["sender"], record["ticket"])
                if int(record["sender"], 16) == 0:
                    hooks += 1
                    message = ("", view << 16 | hooks)
                outcome = record["error"] if "error" in record else record["result"]
                for name in record["objects"]:
                    parts[name].runs.append(Ran(message, record["operation"], outcome))
            case _:
                part = parts[record["object"]]
                part.looks.append((len(part.runs), record))
    return parts


def _lay(timeline: Timeline, parts: list[Part], canon: Canon) -> Iterator[Violation]:
    """Lay the parts over each other, on the one that begins earliest."""
    timeline.parts = parts
    waiting = [part for part in parts if part.runs]
    waiting.sort(key=lambda part: canon.places.get(part.runs[0].message, (0, 0)))
    while waiting:
        index = {run.message: number for number, run in enumerate(timeline.runs)}
        part = next(
            (p for p in waiting if not index or any(run.message in index for run in p.runs)),
            waiting[0],
        )
        waiting.remove(part)
        shared = next((n for n, run in enumerate(part.runs) if run.message in index), None)
        begins = len(timeline.runs)
        if shared is not None:
            begins = index[part.runs[shared].message] - shared
        if begins < 0:
            text = (
                f"{timeline.name!r}: it ran {counted(-begins, 'operation')} before what was first"
            )
            yield Violation("I1", part.history.incarnation, text)
            continue
        part.begins = begins
        yield from _compare(timeline, part, begins)
    for part in parts:
        if not part.runs:
            part.begins = _position(timeline, part.history, canon)
        else:
            yield from _missing(timeline, part, canon)


def _compare(timeline: Timeline, part: Part, begins: int) -> Iterator[Violation]:
    """I1: the same order at each object. I25: the same outcome everywhere."""
    incarnation = part.history.incarnation
    for number, run in enumerate(part.runs, begins):
        if number == len(timeline.runs):
            timeline.runs.append(run)
            continue
        other = timeline.runs[number]
        if run.message != other.message:
            text = f"{timeline.name!r}: {run.message} ran where {other.message} ran elsewhere"
            yield Violation("I1", incarnation, text)
            return
        if run != other:
            text = (
                f"{timeline.name!r}: {run.operation} gave {run.outcome}, elsewhere {other.outcome}"
            )
            yield Violation("I25", incarnation, text)


def _missing(timeline: Timeline, part: Part, canon: Canon) -> Iterator[Violation]:
    """I19: what ran elsewhere, and was delivered here, has run here if the member stayed to the end."""
    if part.begins is None or not part.history.left:
        return
    following = part.begins + len(part.runs)
    last = max((place for place, _ in canon.delivered(part.history)), default=(0, 0))
    if following < len(timeline.runs):
        run = timeline.runs[following]
        place = canon.places.get(run.message)
        if place is not None and place <= last:
            text = f"{timeline.name!r}: {run.message} was delivered and never ran"
            yield Violation("I19", part.history.incarnation, text)


def _position(timeline: Timeline, history: History, canon: Canon) -> int | None:
    """How many operations had run when a member that ran none of them got its state."""
    first = min((place_of(record) for record in history.of("deliver")), default=None)
    places = [canon.places.get(run.message) for run in timeline.runs]
    known: list[Place] = [place for place in places if place is not None]
    if first is None or len(known) != len(places) or known != sorted(known):
        return None
    return sum(place < first for place in known)


def check(canon: Canon, histories: list[History], model_of: ModelOf) -> Iterator[Violation]:
    """All that concerns objects."""
    found, violations = timelines(histories, canon)
    yield from violations
    invoked, acknowledged = invocations(histories), outcomes(histories, "ok")
    for timeline in found:
        yield from _digests(timeline)
        known = model_of(timeline.name)
        if known is not None:
            yield from _replay(timeline, *known, invoked, acknowledged)


def _looks(timeline: Timeline) -> Iterator[tuple[int, Part, Record]]:
    """Reads and digests of an object, by position."""
    found = [
        (part.begins + after, part, record)
        for part in timeline.parts
        if part.begins is not None
        for after, record in part.looks
    ]
    return iter(sorted(found, key=lambda look: look[0]))


def _digests(timeline: Timeline) -> Iterator[Violation]:
    """I18: at one position, one state."""
    states: dict[int, tuple[str, str]] = {}
    for position, part, record in _looks(timeline):
        if record["kind"] == "state":
            incarnation = part.history.incarnation
            digest, other = states.setdefault(position, (record["digest"], incarnation))
            if digest != record["digest"]:
                after = counted(position, "operation")
                text = f"{timeline.name!r}: after {after} its state is not that at {other}"
                yield Violation("I18", incarnation, text)


def _replay(
    timeline: Timeline,
    model: Model,
    state: Any,
    invoked: dict[MessageId, Record],
    acknowledged: dict[MessageId, Record],
) -> Iterator[Violation]:
    """I19, I20, I21: guards, results and local reads are those of a model."""
    if not timeline.runs or not timeline.runs[0].operation.endswith(".__init__"):
        return
    looks = list(_looks(timeline))
    looks.reverse()
    for position, run in enumerate(timeline.runs):
        while looks and looks[-1][0] <= position:
            yield from _read(model, state, timeline, *looks.pop())
        operation = run.operation.partition(".")[2]
        if position == 0 or run.message[0] == "":
            continue
        args = invoked.get(run.message, {}).get("args")
        if args is None:
            return
        if not model.ready(state, operation, args):
            text = f"{timeline.name!r}: {run.operation} ran while its guard was false"
            yield Violation("I19", run.message[0], text)
            return
        state, expected = model.step(state, operation, args)
        answer = acknowledged.get(run.message)
        if answer is not None and not _same(answer, expected):
            text = f"{timeline.name!r}: {run.operation}{tuple(args)} gave {result_of(answer)!r}, not {expected!r}"
            yield Violation("I20", run.message[0], text)
    while looks:
        yield from _read(model, state, timeline, *looks.pop())


def _read(
    model: Model, state: Any, timeline: Timeline, position: int, part: Part, record: Record
) -> Iterator[Violation]:
    if record["kind"] != "read" or position == 0:
        return
    operation = record["operation"].partition(".")[2]
    _, expected = model.step(state, operation, record["args"])
    if not _same(record, expected):
        text = (
            f"{timeline.name!r}: {record['operation']} gave {result_of(record)!r} after {position} "
            f"operations, and {expected!r}"
        )
        yield Violation("I21", part.history.incarnation, text)


def result_of(record: Record) -> object:
    """The result of an `ok` or a `read`."""
    return record["error"] if "error" in record else record.get("value")


def _same(record: Record, expected: object) -> bool:
    if isinstance(expected, Refused):
        return record.get("error") == expected.error
    return "error" not in record and record.get("value") == expected
