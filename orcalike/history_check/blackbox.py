"""I20 without any knowledge of the order: is there a linearization? (Wing and Gong; Lowe.)

Writes and their results, object by object: a history is linearizable if each object's is. The search
takes the operations that may come first one after the other, and goes back when none is left; what
was tried is remembered as (the set of what was taken, the state), after Lowe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orcalike.history_check.models import Model, ModelOf, Refused
from orcalike.history_check.objects import result_of
from orcalike.history_check.records import History, Violation, outcomes
from orcalike.transport.wording import counted

NEVER = 1 << 62

STEPS_MAX = 2_000_000
"""Steps after which the answer is "unknown"."""


@dataclass(frozen=True, slots=True)
class Call:
    """One operation as its caller saw it; `returned` is NEVER if the outcome is unknown."""

    invoked: int
    returned: int
    operation: str
    args: tuple[Any, ...]
    value: object = None


@dataclass(slots=True)
class _Event:
    """An invocation, or a return (`call` -1), in a list that is linked both ways."""

    number: int
    is_call: bool
    before: int
    after: int


def linearizable(
    calls: list[Call], model: Model, start: Any, steps: int = STEPS_MAX
) -> bool | None:
    """Whether the calls of one object have a linearization; None if the search was given up."""
    events = _events(calls)
    returns = {event.number: at for at, event in enumerate(events) if not event.is_call}
    known = sum(call.returned != NEVER for call in calls)
    state, taken, done = start, 0, 0
    tried: set[tuple[int, Any]] = set()
    stack: list[tuple[int, Any]] = []
    at = events[0].after
    while done < known:
        steps -= 1
        if steps == 0:
            return None
        event = events[at]
        if at != 0 and event.is_call:
            call = calls[event.number]
            following = _step(model, state, call)
            if following is not None:
                key = (taken | 1 << event.number, following[0])
                if key not in tried:
                    tried.add(key)
                    stack.append((at, state))
                    state, taken = following[0], key[0]
                    done += call.returned != NEVER
                    _lift(events, at, returns)
                    at = events[0].after
                    continue
            at = event.after
            continue
        # A return whose call was not taken, or the end: one of those taken must come later.
        if not stack:
            return False
        at, state = stack.pop()
        event = events[at]
        taken &= ~(1 << event.number)
        done -= calls[event.number].returned != NEVER
        _unlift(events, at, returns)
        at = event.after
    return True


def _step(model: Model, state: Any, call: Call) -> tuple[Any, object] | None:
    """The state after a call, if it may come next with the result that it had."""
    if not model.ready(state, call.operation, call.args):
        return None
    after, expected = model.step(state, call.operation, call.args)
    if isinstance(expected, Refused):
        expected = expected.error
    if call.returned != NEVER and call.value != expected:
        return None
    return after, expected


def _events(calls: list[Call]) -> list[_Event]:
    """The events by time, behind a head at 0; at one time invocations come first."""
    times = [(call.invoked, 0, number) for number, call in enumerate(calls)]
    times += [(call.returned, 1, n) for n, call in enumerate(calls) if call.returned != NEVER]
    events = [_Event(-1, False, 0, 1)]
    for _, kind, number in sorted(times):
        events.append(_Event(number, kind == 0, len(events) - 1, len(events) + 1))
    events[-1].after = 0
    events[0].before = len(events) - 1
    return events


def _lift(events: list[_Event], at: int, returns: dict[int, int]) -> None:
    """Take a call and its return out of the list."""
    for where in (at, returns.get(events[at].number)):
        if where is not None:
            event = events[where]
            events[event.before].after = event.after
            events[event.after].before = event.before


def _unlift(events: list[_Event], at: int, returns: dict[int, int]) -> None:
    """Put them back."""
    for where in (returns.get(events[at].number), at):
        if where is not None:
            event = events[where]
            events[event.before].after = where
            events[event.after].before = where


def calls_by_object(
    histories: list[History], model_of: ModelOf
) -> dict[str, tuple[Model, Any, list[Call]]]:
    """What was called on each object that a model knows, without what never ran."""
    acknowledged, failed = outcomes(histories, "ok"), outcomes(histories, "fail")
    calls: dict[str, list[Call]] = defaultdict(list)
    for history in histories:
        for record in history.of("invoke"):
            name, message = record["object"], (history.incarnation, record["ticket"])
            if not name or message in failed:
                continue
            answer = acknowledged.get(message)
            returned, value = (NEVER, None) if answer is None else (answer["t"], result_of(answer))
            args = tuple(record["args"])
            operation = record["operation"].partition(".")[2]
            calls[name].append(Call(record["t"], returned, operation, args, value))
    return {
        name: (*known, made)
        for name, made in calls.items()
        if (known := model_of(name)) is not None
    }


def check(histories: list[History], model_of: ModelOf, most: int = 10_000) -> Iterator[Violation]:
    """I20, black box, for as many calls as `most`; objects that are too long are cut at the end."""
    for name, (model, start, calls) in sorted(calls_by_object(histories, model_of).items()):
        calls.sort(key=lambda call: call.invoked)
        first = calls[:most]
        if len(calls) > most:  # what was under way when the part ends has an outcome unknown to it
            end = calls[most].invoked
            first = [
                call
                if call.returned < end
                else Call(call.invoked, NEVER, call.operation, call.args)
                for call in first
            ]
        most -= len(first)
        if first and linearizable(first, model, start) is False:
            yield Violation(
                "I20", "", f"{name!r}: no linearization of its {counted(len(first), 'call')}"
            )
        if most <= 0:
            return
