"""`check="shadow"`: each write runs twice, on two states that are equal and not the same.

The first run is on copies that were made through marshal: other identities, and sets in another
order of iteration. If the two runs differ in their result or in the state that they leave, the
operation is not deterministic: it reads a clock or a random number, counts something outside of the
object, or depends on the order of a set or on identities. It is found in one process, at the write
that does it, and is a fault of it (`ReplicaDivergence`).

What differs between processes alone, as `os.getpid()`, is alike in both runs; digests find it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from orcalike.runtime.atomic import Atomic
from orcalike.runtime.call import Call
from orcalike.runtime.classes import ClassInfo
from orcalike.runtime.errors import NotSerializable, ReplicaDivergence
from orcalike.runtime.marshal import Codec
from orcalike.runtime.operation import Operation
from orcalike.runtime.registered import is_dataclass
from orcalike.runtime.replica import Replica
from orcalike.runtime.state import plain_state_of, set_plain_state_of
from orcalike.runtime.stream_decoder import decode_whole
from orcalike.runtime.stream_encoder import encode_whole
from orcalike.transport.errors import OrcalikeError
from orcalike.transport.wording import repr_of

SHOWN_MAX = 60
"""Characters of a value that an error shows."""

_CONTAINERS = frozenset({deque, dict, frozenset, list, set, tuple})

_FILLERS = 64
"""What was in a set before its elements, and makes its table larger than they need."""


class Shadow:
    """Runs the writes of one group twice, in this process."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def run(self, call: Call) -> object:
        """Run a call of an operation or atomic function; gives and raises what it does.

        Raises ReplicaDivergence if the two runs differ.
        """
        function, args, named = call.function, call.args, call.named
        if not isinstance(function, Operation | Atomic):
            result: object = function.function(*call.arguments(), **named)
            return result  # a hook, which comes by here with `run_hook`
        replicas: list[Replica] = call.replicas

        def run_first(copies: Sequence[Any]) -> object:
            others = {id(r.object): copy for r, copy in zip(replicas, copies, strict=True)}
            values = self._copies(tuple(args), others, function.title)
            keywords = dict(
                zip(named, self._copies(tuple(named.values()), others, function.title), strict=True)
            )
            if isinstance(function, Operation):
                values = (copies[0], *values)
            return function.function(*values, **keywords)

        def run_last() -> object:
            return function.function(*call.arguments(), **named)

        return self._twice(function.title, replicas, run_first, run_last)

    def run_hook(self, replica: Replica, hook: str, title: str, member: object) -> None:
        """Run `member_left` or `member_joined`. Raises as `run` does."""
        self._twice(
            title,
            [replica],
            lambda copies: getattr(copies[0], hook)(member),
            lambda: getattr(replica.object, hook)(member),
        )

    def make(self, replica: Replica, shared: Any, info: ClassInfo) -> None:
        """Run `__init__` of a new object. Raises as `run` does."""
        title = f"{info.cls.__name__}.__init__"

        def initialise(target: Any) -> object:
            assert replica.arguments is not None
            values: list[Any] = self._codec.decode(replica.arguments)
            result: object = target.__init__(*values[:-1], **values[-1])
            return result

        first = info.blank()
        self._compare(
            title,
            [replica],
            _outcome(lambda: initialise(first)),
            [first],
            _outcome(lambda: initialise(shared)),
            [shared],
            [info],
        )

    def _twice(
        self,
        title: str,
        replicas: list[Replica],
        run_first: Callable[[Sequence[Any]], object],
        run_last: Callable[[], object],
    ) -> object:
        infos = [replica.info for replica in replicas if replica.info is not None]
        try:
            copies = [self._copy(replica) for replica in replicas]
        except OrcalikeError:  # it cannot travel: there is nothing to compare with
            return run_last()
        rng = [(r, r.rng, r.rng and r.rng[1].getstate()) for r in replicas]
        first = _outcome(lambda: run_first(copies))
        for replica, was, state in rng:
            replica.rng = was
            if was:
                was[1].setstate(state)
        last = _outcome(run_last)
        shared = [replica.object for replica in replicas]
        return self._compare(title, replicas, first, copies, last, shared, infos)

    def _copy(self, replica: Replica) -> Any:
        """An object with the same state, in other conditions."""
        info = replica.info
        assert info is not None
        what = f"the state of {replica.name!r}"
        encoded = encode_whole(
            self._codec, plain_state_of(replica.object, info), what, is_state=True
        )
        copy = info.blank()
        set_plain_state_of(copy, info, _unlike(decode_whole(self._codec, encoded, what)))
        return copy

    def _copies(
        self, values: tuple[Any, ...], others: dict[int, Any], title: str
    ) -> tuple[Any, ...]:
        """Copies of arguments; an object that has a copy already is that."""
        return tuple(
            others[id(value)]
            if id(value) in others
            else _unlike(self._codec.decode(self._codec.encode((value,), title))[0])
            for value in values
        )

    def _compare(
        self,
        title: str,
        replicas: list[Replica],
        first: _Outcome,
        copies: list[Any],
        last: _Outcome,
        shared: list[Any],
        infos: list[ClassInfo],
    ) -> object:
        """Give or raise what the last run did; raises ReplicaDivergence if the first differs."""
        found: list[str] = []
        for replica, copy, real, info in zip(replicas, copies, shared, infos, strict=True):
            for attribute, one, other in self._differences(copy, real, info):
                found.append(f"{attribute} of {replica.name!r} ({_show(one)} and {_show(other)})")
        if self._canonical(first.value()) != self._canonical(last.value()):
            found.append(f"its result ({_show(first.value())} and {_show(last.value())})")
        if found:
            names = " and ".join(repr(replica.name) for replica in replicas)
            raise ReplicaDivergence(
                f"{title} of {names} is not deterministic: run twice on the same state, it gave two "
                f"values of {', '.join(found)}"
            )
        if last.error is not None:
            raise last.error
        return last.result

    def _differences(self, copy: Any, real: Any, info: ClassInfo) -> list[tuple[str, Any, Any]]:
        """The attributes in which two objects differ, with both values."""
        one, other = plain_state_of(copy, info), plain_state_of(real, info)
        if "snapshot" in info.hooks:
            one, other = {"the snapshot": one}, {"the snapshot": other}
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        return [
            (name if name == "the snapshot" else f"the attribute {name!r}", *values)
            for name in sorted({*one, *other})
            if self._canonical((values := (one.get(name, _NONE), other.get(name, _NONE)))[0])
            != self._canonical(values[1])
        ]

    def _canonical(self, value: object) -> object:
        try:
            return self._codec.encode_canonical(value)
        except NotSerializable:
            return type(value)  # a result need not travel


_NONE = ("no value",)


class _Outcome:
    """What a run gave, or raised."""

    def __init__(self, result: object, error: Exception | None) -> None:
        self.result, self.error = result, error

    def value(self) -> object:
        """What is compared: of an exception its class and arguments."""
        if self.error is None:
            return self.result
        return (type(self.error).__qualname__, *self.error.args)


def _outcome(function: Callable[[], object]) -> _Outcome:
    try:
        return _Outcome(function(), None)
    except Exception as error:  # noqa: BLE001 - whatever the operation raises is its outcome
        return _Outcome(None, error)


def _unlike(value: Any) -> Any:
    """A value that was decoded, changed into an equal one whose sets iterate in another order."""
    return _unlike_in(value, {})


def _unlike_in(value: Any, done: dict[int, tuple[Any, Any]]) -> Any:
    """The same of a part; `done` has parts and what came of them, as one may lie in several places."""
    kind = type(value)
    if kind not in _CONTAINERS and not is_dataclass(kind):
        return value
    if id(value) in done:
        return done[id(value)][1]
    result = value
    if kind is set or kind is frozenset:
        fillers = [object() for _ in range(_FILLERS + 8 * len(value))]
        other: set[Any] = set(fillers)
        other.difference_update(fillers)
        for element in reversed(list(value)):
            other.add(element)
        result = other if kind is set else frozenset(other)
    elif kind is list or kind is deque:
        for index, element in enumerate(value):
            value[index] = _unlike_in(element, done)
    elif kind is dict:
        for key, element in value.items():
            value[key] = _unlike_in(element, done)
    elif kind is tuple:
        result = tuple(_unlike_in(element, done) for element in value)
    elif hasattr(value, "__dict__"):
        for name, element in vars(value).items():
            vars(value)[name] = _unlike_in(element, done)
    done[id(value)] = value, result
    return result


def _show(value: object) -> str:
    text = repr_of(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
