"""I20 without any knowledge of the order: is there a linearization? (Wing and Gong; Lowe.)

Writes and their results, object by object: a history is linearizable if each object's is. The search
takes the operations that may come first one after the other, and goes back when none is left; what
was tried is remembered as (the set of what was taken, the state), after Lowe. Those of unknown outcome are taken when no other will do.
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
    """An invocation or a return, in a list that is linked both ways."""

    number: int
    is_call: bool
    before: int
    after: int


def linearizable(
    calls: list[Call], model: Model, start: Any, steps: int = STEPS_MAX
) -> bool | None:
    """Whether the calls of one object have a linearization; None if the search was given up."""
    events, places = _events(calls)
    unknown = [number for number in range(len(calls)) if number not in places]
    unknown.sort(key=lambda number: calls[number].invoked)
    state, taken, left = start, 0, len(places)
    tried: set[tuple[int, Any]] = set()
    stack: list[tuple[Iterator[int], int, Any]] = []
    candidates = _candidates(calls, events, unknown)
    while left:
        for number in candidates:
            steps -= 1
            if steps == 0:
                return None
            following = None if taken >> number & 1 else _step(model, state, calls[number])
            if following is None or (key := (taken | 1 << number, following[0])) in tried:
                continue
            tried.add(key)
            stack.append((candidates, number, state))
            taken, state = key
            if number in places:
                left -= 1
                _lift(events, places[number])
            candidates = _candidates(calls, events, unknown)
            break
        else:  # one of those that were taken must come later
            if not stack:
                return False
            candidates, number, state = stack.pop()
            taken &= ~(1 << number)
            if number in places:
                left += 1
                _unlift(events, places[number])
    return True


def _candidates(calls: list[Call], events: list[_Event], unknown: list[int]) -> Iterator[int]:
    """The calls that may come next: those that began before any other one has ended.

    Those of unknown outcome come last, taken or not: as they go with any result, each of them would be tried at each place.
    """
    at = events[0].after
    while events[at].is_call:
        yield events[at].number
        at = events[at].after
    end = calls[events[at].number].returned
    for number in unknown:
        if calls[number].invoked > end:
            return
        yield number


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


def _events(calls: list[Call]) -> tuple[list[_Event], dict[int, tuple[int, int]]]:
    """The events of calls that have ended by time, behind a head at 0, and where those of each call are.

    At one time invocations come first.
    """
    ended = [(number, call) for number, call in enumerate(calls) if call.returned != NEVER]
    times = [(call.invoked, 0, number) for number, call in ended]
    times += [(call.returned, 1, number) for number, call in ended]
    events = [_Event(-1, False, 0, 1)]
    found: tuple[dict[int, int], dict[int, int]] = {}, {}
    for _, kind, number in sorted(times):
        found[kind][number] = len(events)
        events.append(_Event(number, kind == 0, len(events) - 1, len(events) + 1))
    events[-1].after = 0
    events[0].before = len(events) - 1
    return events, {number: (found[0][number], found[1][number]) for number, _ in ended}


def _lift(events: list[_Event], place: tuple[int, int]) -> None:
    """Take a call and its return out of the list."""
    for where in place:
        event = events[where]
        events[event.before].after = event.after
        events[event.after].before = event.before


def _unlift(events: list[_Event], place: tuple[int, int]) -> None:
    """Put them back."""
    for where in reversed(place):
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
