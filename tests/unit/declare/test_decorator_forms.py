"""The ways in which a decorator may be written, and what one says that is not for what it is above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from orcalike.declare.decorators import atomic, invariant, local, read, shared, write
from orcalike.runtime.classes import lookup_class
from orcalike.runtime.errors import DeclarationError, GuardFalse
from orcalike.runtime.registered import register


class Plain:
    """A class that is not declared, with an operation."""

    def __init__(self) -> None:
        self.items: list[int] = []

    @write
    def put(self, item: int) -> None:
        self.items.append(item)


def looked(self: Plain) -> bool:
    return True


def seen(self: Plain) -> bool:
    return True


@pytest.mark.parametrize(
    ("declare", "remedy"),
    [
        (
            lambda: read(property(len)),  # type: ignore[call-overload]
            "write @property above @read, not below",
        ),
        (lambda: write(staticmethod(len)), "use @local"),
        (lambda: write(Plain.put), "one decorator is enough"),
        (lambda: write(len), "write it with `def`"),
        (lambda: write(resilience=-1), "from 0 to 253, or"),
        (lambda: shared(resilience=True), "from 0 to 253, or"),
        (
            lambda: shared(lambda: None),  # type: ignore[call-overload]
            "for a function use @atomic",
        ),
        (
            lambda: shared("Plain"),  # type: ignore[call-overload]
            r"not 'Plain': write it above a class; an object has its name from group.share\(\)",
        ),
        (lambda: write(Plain), "for a class use @shared"),  # type: ignore[arg-type]
        (lambda: atomic(Plain), "for a class use @shared"),
        (lambda: local(Plain.put), "leave one of the decorators out"),
        (lambda: local(3), "leave one of the decorators out"),
        (lambda: local(invariant(seen)), "leave one of the decorators out"),
        (lambda: read(local(looked)), "one decorator is enough"),
        (lambda: invariant(local(looked)), "one decorator is enough"),
        (lambda: atomic(Plain.__init__), "put @atomic on a function of the module"),
    ],
)
def test_decorators_say_what_they_are_for(declare: Callable[[], object], remedy: str) -> None:
    with pytest.raises(DeclarationError, match=remedy):
        declare()


def test_each_decorator_may_have_parentheses() -> None:
    @shared()
    class Names:
        def __init__(self) -> None:
            self.names: list[str] = []

        @write()
        def add(self, name: str) -> int:
            self.names.append(name)
            return len(self.names)

        @add.when()
        def _(self, name: str) -> bool:
            return bool(name)

        @read()
        def size(self) -> int:
            return len(self.names)

        @local()
        def show(self) -> str:
            return f"{self.names}"

        @invariant()
        def is_small(self) -> bool:
            return len(self.names) < 3

    @atomic()
    def add_both(one: Names, other: Names, name: str) -> int:
        return one.add(name) + other.add(name)

    @add_both.when()
    def _(one: Names, other: Names, name: str) -> bool:
        return one is not other

    @register()
    @dataclass
    class Name:
        text: str

    names = Names()
    assert add_both(names, Names(), "one") == 2
    assert (names.size(), names.show(), Name("one").text) == (1, "['one']", "one")
    info = lookup_class(Names)
    assert info is not None
    assert len(info.invariants) == 1
    with pytest.raises(GuardFalse):
        names.add("")
    with pytest.raises(GuardFalse):
        add_both(names, names, "two")
