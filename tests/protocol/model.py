"""The reference model: what a group's history means, interpreted by one thread, one step at a time.

It knows no mutexes, queues, members or messages under way: an invocation runs at its place in the
order or waits there for its guard; after each change the waiting calls are tried, oldest first. It decides
what state each object has and how each invocation ends (I18, I19, I25).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from orcalike.errors import OrcalikeError
from orcalike.runtime import classes, moment
from orcalike.runtime.codes import Code
from orcalike.runtime.manager import VIEW_INDEX
from orcalike.runtime.marshal import Codec
from orcalike.transport.view import View

Key = tuple[int, int]
"""Whose invocation, and the caller's count of it."""
Outcome = tuple[str, object]
"""("result", value), ("error", words), or ("withdrawn", None)."""


@dataclass(frozen=True, slots=True)
class Cast:
    """One message, as every member gets it."""

    seqno: int
    index: int
    source: int
    """The incarnation of its sender."""
    ticket: int
    stamp: int
    body: bytes


@dataclass(eq=False, slots=True)
class Thing:
    """A shared object: a plain object of its class, which is not shared."""

    number: int
    name: str
    info: classes.ClassInfo
    plain: Any
    dropped: bool = False
    rng: object = None
    seed: int = 0


@dataclass(eq=False, slots=True)
class Step:
    """An invocation, with all that it needs to run."""

    key: Key
    things: list[Thing]
    function: Callable[..., object]
    guard: Callable[..., bool] | None
    undo: bool
    args: tuple[Any, ...]
    named: dict[str, Any]
    place: tuple[int, int, int]


@dataclass
class Model:
    """The objects of a group, after some of its history."""

    things: list[Thing | None] = field(default_factory=lambda: [None])
    names: dict[str, Thing] = field(default_factory=dict)
    waiting: list[Step] = field(default_factory=list)
    finds: dict[Key, tuple[str, str]] = field(default_factory=dict)
    arrived: dict[int, list[Key]] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)
    outcomes: dict[Key, Outcome] = field(default_factory=dict)
    view: View | None = None
    stamp: int = 0

    def __post_init__(self) -> None:
        self.codec = Codec(self._number_of, self._plain_of)
        self._now: tuple[Thing, int, int, int] | None = None

    def replay(self, history: list[Cast | View]) -> None:
        """Let it all happen."""
        with mock.patch.object(moment, "running_place", self._running_place):
            for event in history:
                if isinstance(event, View):
                    self._change_view(event)
                else:
                    self.stamp = event.stamp
                    self._deliver(event)

    def _running_place(self) -> tuple[Thing, int, int, int] | None:
        return self._now

    def state_of(self, thing: Thing) -> bytes:
        """An object's state, in the one form that it has."""
        return self.codec.encode_canonical(vars(thing.plain))

    def _number_of(self, value: object) -> int | None:
        return next((t.number for t in self.things if t is not None and t.plain is value), None)

    def _plain_of(self, number: int) -> object:
        thing = self.things[number]
        assert thing is not None
        return thing.plain

    # Messages.

    def _deliver(self, cast: Cast) -> None:
        number, rest = _varint(cast.body)
        code, body = _varint(rest)
        key, place = (cast.source, cast.ticket), (cast.seqno, cast.index, cast.stamp)
        if number == 0 and code >> 1 == Code.VOID:  # taken back before it left
            self.outcomes[key] = ("withdrawn", None)
            return
        values = self.codec.decode(body)
        if number == 0:
            self._deliver_to_group(Code(code >> 1), key, place, values)
            return
        named: Any = values.pop() if code & 1 else {}
        thing = self.things[number]
        if thing is None:
            self.outcomes[key] = ("error", "ObjectDropped")
            return
        operation = thing.info.operations[code >> 1]
        args = (thing.plain, *values)
        guard, undo = operation.guard, operation.undo
        self._take(Step(key, [thing], operation.function, guard, undo, args, named, place))

    def _deliver_to_group(self, code: Code, key: Key, place: Any, values: list[Any]) -> None:
        match code, values:
            case Code.CREATE, [name, class_name, _, arguments, *_]:
                self._create(key, place, name, class_name, arguments)
            case Code.FIND, [name, class_name, _]:
                self.finds[key] = (name, class_name)
                self._answer_finds()
            case Code.DROP, [number]:
                self._drop(key, number)
            case Code.WITHDRAW, [ticket]:
                self._withdraw((key[0], ticket))
            case Code.FENCE, []:
                self.outcomes[key] = ("result", None)
            case Code.BARRIER, []:
                assert self.view is not None
                if not self.arrived:
                    self.expected = {member.incarnation for member in self.view.replicas}
                self.arrived.setdefault(key[0], []).append(key)
                self._open_barrier()
            case Code.ATOMIC, [name, _, count, *rest]:
                info = classes.lookup_atomic(name)
                assert info is not None
                args, named = tuple(rest[:count]), rest[count] if len(rest) > count else {}
                found = [self._number_of(value) for value in (*args, *named.values())]
                things = [self.things[number] for number in dict.fromkeys(found) if number]
                function, guard, undo = info.atomic.function, info.atomic.guard, info.atomic.undo
                self._take(Step(key, things, function, guard, undo, args, named, place))  # type: ignore[arg-type]

    # Objects.

    def _create(self, key: Key, place: Any, name: str, class_name: str, arguments: bytes) -> None:
        if name in self.names:
            self.outcomes[key] = self._as_class(self.names[name], class_name)
            return
        info = classes.lookup(class_name)
        assert info is not None
        thing = Thing(len(self.things), name, info, info.blank())
        self.things.append(thing)
        given: Any = self.codec.decode(arguments)

        def make() -> object:
            thing.plain.__init__(*given[:-1], **given[-1])
            return thing.plain

        step = Step(key, [thing], make, None, False, (), {}, place)
        if self._run(step):
            self.names[name] = thing
            self._answer_finds()
        else:
            self.things[thing.number] = None

    def _as_class(self, thing: Thing, class_name: str) -> Outcome:
        if thing.info.name != class_name:
            return ("error", "ClassMismatch")
        return ("result", thing.plain)

    def _answer_finds(self) -> None:
        for key, (name, class_name) in list(self.finds.items()):
            if name in self.names:
                del self.finds[key]
                self.outcomes[key] = self._as_class(self.names[name], class_name)

    def _drop(self, key: Key, number: int) -> None:
        thing = self.things[number]
        if thing is None or thing.dropped:
            self.outcomes[key] = ("error", "ObjectDropped")
            return
        thing.dropped = True
        del self.names[thing.name]
        for step in [step for step in self.waiting if thing in step.things]:
            self.waiting.remove(step)
            self.outcomes[step.key] = ("error", "ObjectDropped")
        self.outcomes[key] = ("result", None)

    def _withdraw(self, key: Key) -> None:
        waiting = [step for step in self.waiting if step.key == key]
        for step in waiting:
            self.waiting.remove(step)
        found = self.finds.pop(key, None)
        arrived = key in self.arrived.get(key[0], [])
        if arrived:
            self.arrived[key[0]].remove(key)
            self.arrived = {member: keys for member, keys in self.arrived.items() if keys}
        if waiting or found or arrived:
            self.outcomes[key] = ("withdrawn", None)

    def _open_barrier(self) -> None:
        if self.arrived and self.expected <= self.arrived.keys():
            for key in (key for keys in self.arrived.values() for key in keys):
                self.outcomes[key] = ("result", None)
            self.arrived, self.expected = {}, set()

    # Running.

    def _take(self, step: Step) -> None:
        if any(thing.dropped for thing in step.things):
            self.outcomes[step.key] = ("error", "ObjectDropped")
        elif self._try(step):
            self._wake(set(step.things))

    def _try(self, step: Step) -> bool:
        """Run it if its guard holds; else it waits."""
        try:
            holds = step.guard is None or step.guard(*step.args, **step.named)
        except Exception as error:  # noqa: BLE001 - whatever a guard raises
            self.outcomes[step.key] = _failure(error)
            holds = False
        else:
            if holds:
                self._run(step)
            elif step not in self.waiting:
                self.waiting.append(step)
            return holds
        if step in self.waiting:
            self.waiting.remove(step)
        return True

    def _run(self, step: Step) -> bool:
        if step in self.waiting:
            self.waiting.remove(step)
        before = [self.codec.encode_value(vars(t.plain), "state") for t in step.things]
        self._now = (step.things[-1], *step.place)
        try:
            self.outcomes[step.key] = ("result", step.function(*step.args, **step.named))
            return True
        except Exception as error:  # noqa: BLE001 - whatever an operation raises
            self.outcomes[step.key] = _failure(error)
            if step.undo:
                for thing, state in zip(step.things, before, strict=True):
                    vars(thing.plain).clear()
                    vars(thing.plain).update(self.codec.decode(state)[0])
            return False
        finally:
            self._now = None

    def _wake(self, changed: set[Thing]) -> None:
        """Try the calls that wait for what has changed, from the oldest, and again after each that ran."""
        progress = True
        while progress:
            progress = False
            for step in sorted(self.waiting, key=lambda step: step.place):
                if changed.intersection(step.things) and self._try(step):
                    changed.update(step.things)
                    progress = True
                    break

    # Views.

    def _change_view(self, view: View) -> None:
        before, self.view = self.view, view
        if before is None:
            return
        left = [m for m in before.replicas if view.position(m.incarnation) < 0]
        joined = [m for m in view.replicas if before.position(m.incarnation) < 0]
        gone = {member.incarnation for member in left}
        self.waiting = [step for step in self.waiting if step.key[0] not in gone]
        self.finds = {key: find for key, find in self.finds.items() if key[0] not in gone}
        self.expected -= gone
        self.arrived = {member: keys for member, keys in self.arrived.items() if member not in gone}
        changed: set[Thing] = set()
        for hook, members in (("member_left", left), ("member_joined", joined)):
            for member in members:
                for thing in self.things:
                    if thing is not None and not thing.dropped and hook in thing.info.hooks:
                        self._now = (thing, view.number, VIEW_INDEX, self.stamp)
                        getattr(thing.plain, hook)(member)
                        changed.add(thing)
        self._now = None
        self._wake(changed)
        self._open_barrier()


def _failure(error: Exception) -> Outcome:
    return ("error", type(error).__name__ if isinstance(error, OrcalikeError) else repr(error))


def outcome_of(value: object, error: BaseException | None) -> Outcome:
    """How an invocation ended, in the model's words."""
    if error is None:
        return ("result", value)
    if type(error).__name__ == "InvocationCancelled":
        return ("withdrawn", None)
    assert isinstance(error, Exception)
    return _failure(error)


def _varint(data: bytes) -> tuple[int, bytes]:
    value = shift = 0
    for i, byte in enumerate(data):
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, data[i + 1 :]
    raise ValueError("a varint cut short")
