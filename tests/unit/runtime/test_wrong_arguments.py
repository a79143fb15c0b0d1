"""What is passed in the wrong place is named, with what to write instead."""

from __future__ import annotations

import inspect
from collections import deque
from dataclasses import dataclass
from typing import Any

import pytest

import orcalike as orca
from tests.lib.shared_classes import Counter


class Derived(Counter):
    """A subclass of a shared class, and not shared."""


class Forgotten:
    """Its operation is declared, it is not."""

    @orca.write
    def grow(self) -> None:
        """Nothing."""


class Plain:
    """No shared class at all."""


@orca.shared
class Callable:
    """Its objects can be called, and are no functions."""

    @orca.read
    def __call__(self) -> None:
        """Nothing."""


@dataclass(slots=True)
@orca.shared
class Copied:
    """What `@dataclass(slots=True)` gives is another class."""

    value: int = 0

    @orca.write
    def grow(self) -> None:
        self.value += 1


@dataclass
@orca.shared
class Changed:
    """It has its `__init__` from a decorator that ran after the class was declared."""

    value: int = 0


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Counter(), r"this is a Counter, where a class belongs: write share\(Counter, name"),
        (3, "3 is no class: .* takes the class first, then the name"),
        (Derived, r"Derived is not shared, although its base Counter is: .* above `class Derived`"),
        (Forgotten, "Forgotten.grow is an operation, but the class is not shared: write @orcalike"),
        (
            Copied,
            "Copied is a copy of the class .*: write @orcalike.shared above the decorator that",
        ),
        (
            Changed,
            "Changed has another __init__ than when .*: write @orcalike.shared above the dec",
        ),
        (int, "int is not a shared class: keep one in an attribute of a class of your own"),
        (Plain, "Plain'> is not a shared class: decorate it with @orcalike.shared"),
    ],
)
def test_what_is_no_shared_class(group: orca.Group, cls: Any, words: str) -> None:
    for call in (group.share, group.find):
        with pytest.raises(TypeError, match=words):
            call(cls, "object")


def test_an_object_is_ended_and_no_name(group: orca.Group, counter: Counter) -> None:
    with pytest.raises(TypeError, match="'counter' is a name: drop takes the object that"):
        group.drop("counter")
    assert counter.add(1) == 1


def test_an_object_that_is_not_shared_is_no_function(counter: Counter) -> None:
    add: Any = counter.add
    with pytest.raises(
        orca.NotSerializable, match=r"Callable'> .*: pass what group\.share returns"
    ):
        add(Callable())


def test_a_remedy_loses_nothing(group: orca.Group, counter: Counter) -> None:
    add: Any = counter.add
    value: Any
    for value in (iter([1]), {}.keys(), {}.values(), range(3)):
        with pytest.raises(orca.NotSerializable, match=r"pass list\(value\)$"):
            add(value)
    with pytest.raises(orca.NotSerializable, match=r"pass dict\(value\)$"):
        add({}.items())

    class Ring:
        """It can be iterated, and is more than what comes of that."""

        def __init__(self) -> None:
            self.items, self.at = deque([1, 2]), 1

        def __iter__(self) -> Any:
            return iter(self.items)

    with pytest.raises(orca.NotSerializable, match="pass plain data, a registered dataclass"):
        add(Ring())


def test_errors_have_their_public_names() -> None:
    for name in orca.__all__:
        found = getattr(orca, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert f"{found.__module__}.{found.__qualname__}" == f"orcalike.{name}"


def test_read_may_be_written_with_parentheses() -> None:
    @orca.shared
    class Lamp:
        @orca.read()
        def lit(self) -> bool:
            return True

    assert Lamp.lit.kind == "read"
    assert Lamp().lit()


def test_an_operation_of_an_object_looks_like_its_method(counter: Counter) -> None:
    bound: Any = counter.add
    assert bound.__name__ == "add"
    assert bound.__qualname__ == "Counter.add"
    assert bound.__doc__ == Counter.add.__doc__
    assert bound.__self__ is counter
    assert (
        list(inspect.signature(bound).parameters)
        == list(inspect.signature(Counter.add).parameters)[1:]
    )
