"""Operations that are called as those of another class: `super().put(...)` and `Base.put(object, ...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import orcalike as orca


class Undeclared:
    """A base that is not shared itself."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @orca.write
    def undeclared(self, word: str) -> str:
        self.done.append(f"undeclared {word}")
        return "undeclared"


@orca.shared
class Base(Undeclared):
    """Its operations have other places than those of the class below."""

    @orca.write
    def put(self, word: str) -> str:
        self.done.append(f"put {word}")
        return "put"

    @orca.write
    def replaced(self, word: str) -> str:
        self.done.append(f"replaced {word}")
        return "replaced"

    @orca.read
    def seen(self) -> list[str]:
        return list(self.done)


@orca.shared
class Derived(Base):
    """An operation that comes before all of its base's, and one that replaces a base's."""

    @orca.write
    def add(self, word: str) -> str:
        self.done.append(f"add {word}")
        return "add"

    @orca.write
    def replaced(self, word: str) -> str:
        return super().replaced(f"again {word}")

    @orca.local
    def put_loudly(self, word: str) -> str:
        return super().put(word.upper())

    @orca.local
    def undeclared_loudly(self, word: str) -> str:
        return super().undeclared(word.upper())

    @orca.local
    def seen_before(self) -> list[str]:
        return super().seen()


@orca.shared
class Other:
    """A class that has nothing to do with these."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @orca.write
    def zero(self, word: str) -> None:
        self.done.append(f"zero {word}")


def wait(target: Any, operation: Any) -> object:
    """A plain call of an operation that was found in a class."""
    return operation(target, "x")


def within(target: Any, operation: Any) -> object:
    """A call with a time limit."""
    return operation.__get__(target, type(target)).options(timeout=60)("x")


def without(target: Any, operation: Any) -> object:
    """A call that does not wait, and then its outcome."""
    return operation.__get__(target, type(target)).nowait("x").result()


CALLS = pytest.mark.parametrize("call", [wait, within, without])


def test_a_local_method_calls_its_base(group: orca.Group) -> None:
    words = group.share(Derived, "words")
    assert words.put_loudly("one") == "put"
    assert words.undeclared_loudly("two") == "undeclared"
    assert words.replaced("three") == "replaced"
    assert words.seen_before() == ["put ONE", "undeclared TWO", "replaced again three"]


@CALLS
def test_an_operation_of_a_base_is_the_one_that_was_inherited(
    group: orca.Group, call: Callable[[Any, Any], object]
) -> None:
    words = group.share(Derived, "words")
    assert call(words, Base.put) == "put"
    assert call(words, Undeclared.undeclared) == "undeclared"
    assert words.seen() == ["put x", "undeclared x"]


@CALLS
@pytest.mark.parametrize("operation", [Base.replaced, Other.zero])
def test_one_that_the_class_does_not_have_is_refused(
    group: orca.Group, call: Callable[[Any, Any], object], operation: Any
) -> None:
    words = group.share(Derived, "words")
    title = operation.title.replace(".", r"\.")
    with pytest.raises(TypeError, match=rf"{title} is no operation of Derived, .* 'words'"):
        call(words, operation)
    assert words.done == []
