"""What may be declared, what is refused, and what a class is afterwards (design 4, Declaring)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, total_ordering, wraps
from typing import Any, Generic, TypeVar

import pytest

from orcalike.declare.decorators import atomic, local, read, shared, write
from orcalike.runtime.classes import lookup_atomic, lookup_class
from orcalike.runtime.errors import DeclarationError
from orcalike.runtime.operation import Operation
from orcalike.runtime.registered import import_name

T = TypeVar("T")


class Plain:
    """A class that is not declared, with operations to inherit."""

    def __init__(self) -> None:
        self.items: list[int] = []

    @write
    def put(self, item: int) -> None:
        """Adds an item."""
        self.items.append(item)

    @put.when
    def _(self, item: int) -> bool:
        return len(self.items) < 2

    @write(popup=True, undo=True, resilience=1)
    def take(self) -> int:
        return self.items.pop()

    @take.when
    def _(self) -> bool:
        return bool(self.items)

    @write
    def clear(self) -> None:
        self.items.clear()

    @property
    @read
    def last(self) -> int:
        return self.items[-1]

    @read
    def __len__(self) -> int:
        return len(self.items)


def operations(cls: type[Any]) -> list[tuple[str, str]]:
    info = lookup_class(cls)
    assert info is not None
    return [(operation.name, operation.kind) for operation in info.operations]


def test_a_shared_class_stays_itself_and_works_unshared() -> None:
    @shared(resilience=2)
    class Jobs(Plain):
        pass

    jobs = Jobs()
    jobs.put(3)

    assert type(jobs) is Jobs
    assert Jobs.__mro__ == (Jobs, Plain, object)
    assert (jobs.last, len(jobs), jobs.take()) == (3, 1, 3)


def test_operations_have_their_place_by_name() -> None:
    Jobs = shared(type("Jobs", (Plain,), {}))
    info = lookup_class(Jobs)
    assert info is not None

    assert operations(Jobs) == [
        ("__len__", "read"),
        ("clear", "write"),
        ("last", "read"),
        ("put", "write"),
        ("take", "write"),
    ]
    assert [operation.index for operation in info.operations] == [0, 1, 2, 3, 4]
    assert all(operation.info is info for operation in info.operations)
    take = info.operations[4]
    assert (take.popup, take.undo, take.resilience) == (True, True, 1)
    assert take.guard is Plain.take.guard


def test_each_class_has_operations_of_its_own() -> None:
    @shared
    class Jobs(Plain):
        pass

    @shared
    class More(Jobs):
        @write
        def put(self, item: int) -> None:
            super().put(item + 1)

        @write
        def add(self) -> None:
            self.put(1)

    more = More()
    more.add()

    assert more.items == [2]
    assert lookup_class(Plain) is None
    assert Plain.put.info is None
    assert Jobs.put.info is lookup_class(Jobs)
    assert More.put.info is lookup_class(More)
    assert (Jobs.take.index, More.take.index) == (4, 5)
    assert More.put.guard is None


def test_dataclasses_generics_and_abstract_classes_can_be_shared() -> None:
    class Offer(ABC, Generic[T]):
        @read
        @abstractmethod
        def get(self) -> T: ...

    @shared
    @total_ordering
    @dataclass(unsafe_hash=True, slots=True)
    class Box(Offer[int]):
        value: int
        names: list[str] = field(default_factory=list, hash=False)

        @read
        def get(self) -> int:
            return self.value

        @read
        def __lt__(self, other: Box) -> bool:
            return self.value < other.value

    assert Box(3) == Box(3)
    assert Box(3) < Box(4)
    assert operations(Box) == [("__lt__", "read"), ("get", "read")]


def test_local_members_are_no_operations() -> None:
    @shared
    class Jobs(Plain):
        @local
        def describe(self) -> str:
            return f"{self.items}"

        @property
        @local
        def size(self) -> int:
            return len(self.items)

        @local
        @staticmethod
        def limit() -> int:
            return 2

        @classmethod
        @local
        def of(cls, item: int) -> Jobs:
            jobs = cls()
            jobs.put(item)
            return jobs

    assert Jobs.of(1).describe() == "[1]"
    assert (Jobs.of(1).size, Jobs.limit()) == (1, 2)
    assert len(operations(Jobs)) == 5


def test_hooks_are_known() -> None:
    @shared
    class Jobs(Plain):
        def member_left(self, member: object) -> None:
            self.items.clear()

        def snapshot(self) -> list[int]:
            return self.items

        @classmethod
        def restore(cls, state: list[int]) -> Jobs:
            jobs = cls()
            jobs.items = state
            return jobs

    info = lookup_class(Jobs)
    assert info is not None
    assert info.hooks == {"member_left", "snapshot", "restore"}
    assert info.init is Plain.__init__


def naked() -> None:
    class Jobs(Plain):
        def drop(self) -> None: ...

    shared(Jobs)


def naked_dunder() -> None:
    class Jobs(Plain):
        def __contains__(self, item: int) -> bool:
            return item in self.items

    shared(Jobs)


def naked_static() -> None:
    class Jobs(Plain):
        @staticmethod
        def limit() -> int:
            return 2

    shared(Jobs)


def naked_property() -> None:
    class Jobs(Plain):
        @property
        def size(self) -> int:
            return 1

    shared(Jobs)


def assignable_property() -> None:
    class Jobs(Plain):
        @property
        @read
        def size(self) -> int:
            return 1

        @size.setter
        def size(self, value: int) -> None: ...

    shared(Jobs)


def cached() -> None:
    class Jobs(Plain):
        @cached_property
        def size(self) -> int:
            return 1

    shared(Jobs)


def another_kind() -> None:
    class Jobs(Plain):
        @read
        def put(self, item: int) -> None: ...

    shared(Jobs)


def hidden() -> None:
    class Jobs(Plain):
        @local
        def put(self, item: int) -> None: ...  # type: ignore[override]

    shared(Jobs)


def decorated_hook() -> None:
    class Jobs(Plain):
        @write
        def member_left(self, member: object) -> None: ...

    shared(Jobs)


def other_hook() -> None:
    class Jobs(Plain):
        def member_left(self) -> None: ...

    shared(Jobs)


def half_a_snapshot() -> None:
    class Jobs(Plain):
        def snapshot(self) -> list[int]:
            return self.items

    shared(Jobs)


def alias() -> None:
    class Jobs(Plain):
        append = Plain.put

    shared(Jobs)


def builtin_base() -> None:
    class Jobs(dict[str, int]):
        pass

    shared(Jobs)


def static_operation() -> None:
    class Jobs(Plain):
        @staticmethod
        @write
        def add(item: Any) -> None: ...

    shared(Jobs)


def operation_of_the_class() -> None:
    class Jobs(Plain):
        @classmethod
        @read
        def _size(cls) -> int:
            return 1

    shared(Jobs)


def setting_operation() -> None:
    class Jobs(Plain):
        @property
        @local
        def size(self) -> int:
            return len(self.items)

        @size.setter
        @write
        def size(self, size: int) -> None: ...

    shared(Jobs)


def timed(function: Any) -> Any:
    @wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


def wrapped_operation() -> None:
    class Jobs(Plain):
        @timed
        @write
        def _add(self) -> None: ...

    shared(Jobs)


def wrapped_function() -> None:
    class Jobs(Plain):
        @write
        @timed
        def add(self) -> None: ...

    shared(Jobs)


def selfless() -> None:
    class Jobs(Plain):
        @write  # type: ignore[arg-type]
        def add() -> None: ...

    shared(Jobs)


def frozen() -> None:
    @dataclass(frozen=True)
    class Jobs:
        size: int = 0
        names: list[str] = field(default_factory=list)

        @write
        def add(self) -> None:
            self._count(1)

        @write
        def drop(self) -> None:
            del self.names

        @write
        def name(self, name: str) -> None:
            self.names.append(name)

        @write
        def swap(self, attribute: str) -> None:
            setattr(self, attribute, 0)

        def _count(self, more: int) -> None:
            self.size += more  # type: ignore[misc]

    shared(Jobs)


def enumeration() -> None:
    class Color(Enum):
        RED = 1

    shared(Color)


def other_guard() -> None:
    class Jobs(Plain):
        @write
        def add(self, item: int, times: int = 1) -> None: ...

        @add.when
        def _(self, item: int, times: int = 2) -> bool:
            return True

        @write
        def drop(self, item: int) -> None: ...

        @drop.when  # type: ignore[arg-type]
        def _(self) -> bool:
            return True

    shared(Jobs)


@pytest.mark.parametrize(
    ("declaration", "what"),
    [
        (naked, r"Jobs\.drop is public, and no operation; decorate it with @read, @write or @l"),
        (naked_dunder, r"Jobs\.__contains__ is public, and no operation; decorate it"),
        (naked_static, r"Jobs\.limit is public, and no operation; decorate it"),
        (naked_property, r"Jobs\.size is public, and no operation; write @property above @read"),
        (assignable_property, r"Jobs\.size is a property that changes the object; write a method"),
        (cached, r"Jobs\.size is a cached_property, .*; write a method"),
        (another_kind, r"Jobs\.put is a read, and overrides the write of Plain; declare it @write"),
        (hidden, r"Jobs\.put hides an operation of a base and is none; decorate it as"),
        (decorated_hook, r"Jobs\.member_left is called by orcalike .*; leave @write out"),
        (other_hook, r"Jobs\.member_left is a hook .*; write `def member_left\(self, member\)`"),
        (half_a_snapshot, r"Jobs has one of snapshot and restore; write both"),
        (alias, r"Jobs\.append is put under a second name; write a method of its own"),
        (static_operation, r"Jobs\.add is a write and a staticmethod, .*; leave one of them out"),
        (
            operation_of_the_class,
            r"Jobs\._size is a read and a classmethod, .* or write @local for",
        ),
        (setting_operation, r"Jobs\.size is a property that changes the object; write a method"),
        (wrapped_operation, r"Jobs\._add is a write below another .*; write @write above all"),
        (wrapped_function, r"Jobs\.add has no `self`; a decorator below .* returns a `self`, too"),
        (selfless, r"Jobs\.add has no `self`; give it one, or write @local and @staticmethod"),
        (builtin_base, r"Jobs derives from dict, whose methods .*; keep one in an attribute"),
        (frozen, r"Jobs\._count, which Jobs\.add calls, assigns self\.size, .* frozen .*; leave"),
        (frozen, r"Jobs\.drop assigns self\.names, and its class is a frozen dataclass; leave"),
        (frozen, r"Jobs\.swap calls setattr\(self, .*, and its class is a frozen dataclass"),
        (enumeration, r"Color is an enum, .*; write @register"),
        (
            other_guard,
            r"the guard of Jobs\.add has other .*; give it the same: \(self, item, times",
        ),
        (other_guard, r"the guard of Jobs\.drop has other .*; give it the same: \(self, item\)"),
    ],
)
def test_what_cannot_keep_the_promises_is_refused(
    declaration: Callable[[], None], what: str
) -> None:
    with pytest.raises(DeclarationError, match=rf"(?m)^{__file__}:\d+: {what}"):
        declaration()


def test_a_frozen_dataclass_may_change_what_it_has() -> None:
    @shared
    @dataclass(frozen=True)
    class Names:
        names: list[str] = field(default_factory=list)

        @write
        def add(self, name: str) -> int:
            self.names.append(name)
            self.names[0] = name
            return len(self.names)

    assert Names().add("one") == 1


def test_what_is_no_guard() -> None:
    @write
    def put(self: Plain) -> None: ...

    @atomic
    def move(source: Plain) -> None: ...

    @put.when
    def _(self: Plain) -> bool:
        return True

    def check(when: Any, guard: object, what: str) -> None:
        with pytest.raises(DeclarationError, match=rf"^{__file__}:\d+: {what}"):
            when(guard)

    check(put.when, put.guard, r"put has a guard already; write one that looks at both")
    check(Plain.clear.when, 3, r"the guard of Plain\.clear is not a plain function but 3; decorate")
    check(
        move.when, 3, r"the guard of move is not a plain function but 3; decorate one with `when`"
    )
    check(
        move.when, move.function, r"the guard of move has its name, .* take its place; call it `_`"
    )
    clear = Plain.clear.function
    check(Plain.clear.when, clear, r"the guard of Plain\.clear has its name, .*; call it `_`")
    Jobs: Any = shared(type("Jobs", (Plain,), {}))
    check(Jobs.clear.when, put.guard, r"Plain\.clear was declared with its class; write the guard")


def test_an_operation_may_be_abstract_in_either_order() -> None:
    class Above(ABC):
        @abstractmethod
        @write
        def put(self) -> None: ...

    class Below(ABC):
        @write
        @abstractmethod
        def put(self) -> None: ...

    for base in (Above, Below):
        assert base.__abstractmethods__ == {"put"}
        derived: Any = type("Jobs", (base,), {"put": write(lambda self: None)})
        assert not derived.__abstractmethods__


def test_a_method_that_is_local_may_look_like_an_operation() -> None:
    @shared
    class Jobs(Plain):
        @local
        @wraps(Plain.put)
        def put_two(self, item: int) -> None:
            self.put(item)
            self.put(item)

    jobs: Any = Jobs()
    jobs.put_two(3)
    assert jobs.items == [3, 3]


def test_atomic_functions_are_registered_with_their_guard() -> None:
    @atomic(undo=True)
    def move(source: Plain, target: Plain, count: int = 1) -> None:
        for _ in range(count):
            target.put(source.take())

    name = import_name(move.function)
    before = lookup_atomic(name)
    assert before is not None
    assert (before.atomic, before.atomic.undo) == (move, True)

    @move.when
    def _(source: Plain, target: Plain, count: int = 1) -> bool:
        return len(source.items) >= count

    after = lookup_atomic(name)
    assert after is not None
    assert after.atomic is move
    assert after.digest != before.digest


def test_an_atomic_function_and_its_guard_have_the_same_parameters() -> None:
    @atomic
    def move(source: Plain, target: Plain) -> None: ...

    with pytest.raises(DeclarationError, match=r"give it the same: \(source, target\)"):
        move.when(lambda source: True)  # type: ignore[arg-type, misc]


def test_operations_are_descriptors_in_the_class() -> None:
    assert isinstance(Plain.put, Operation)
    assert Plain.put.__doc__ == "Adds an item."
    assert Plain.put.__name__ == "put"
