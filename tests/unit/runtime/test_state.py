"""The state of an object: what becomes of an object whose state is looked at, or set."""

from __future__ import annotations

import dis
from collections.abc import Callable
from pathlib import Path
from sys import intern
from types import FunctionType
from typing import Any, cast

import pytest

import orcalike as orca
from orcalike.runtime.classes import ClassInfo, lookup_class
from orcalike.runtime.state import plain_state_of, set_plain_state_of
from tests.lib.untraced import untraced

GENERIC = {"LOAD_ATTR", "STORE_ATTR", "LOAD_ATTR_ADAPTIVE", "STORE_ATTR_ADAPTIVE"}
"""What CPython runs in place of its fast instructions where it could not specialise an attribute."""


def info_of(shared: Any) -> ClassInfo:
    info = lookup_class(type(shared))
    assert info is not None
    return info


def look(shared: Any) -> None:
    plain_state_of(shared, info_of(shared))


def set_to_another(shared: Any) -> None:
    names = [bytes(name, "ascii").decode() for name in ("value", "name")]  # they have travelled
    set_plain_state_of(shared, info_of(shared), dict(zip(names, (7, "seven"), strict=True)))


def set_while_empty(shared: Any) -> None:
    """As a joiner does, which has made no attribute yet."""
    del shared.value, shared.name
    set_to_another(shared)


@untraced
@pytest.mark.parametrize("done", [look, set_to_another, set_while_empty])
@pytest.mark.parametrize("often", [1, 3])
def test_operations_stay_specialised(done: Callable[[Any], None], often: int) -> None:
    """What is done to an object leaves its attributes where CPython finds them fast."""
    Counter = counter_class()
    shared = Counter()
    for _ in range(often):
        done(shared)
    assert not generic_after_many(Counter, shared)


@untraced
def test_operations_of_a_joiner_are_specialised() -> None:
    Counter = counter_class()
    shared = Counter.__new__(Counter)
    set_to_another(shared)
    assert not generic_after_many(Counter, shared)
    # With a name that only equals the code's own the fast instructions are there, and give up each time.
    assert all(name is intern(name) for name in vars(shared))


def counter_class() -> Any:
    """A class of its own each time: what is specialised is the function."""

    @orca.shared
    class Counter:
        def __init__(self) -> None:
            self.value = 0
            self.name = "none"

        @orca.write
        def add(self, amount: int) -> None:
            self.value += amount

    return Counter


def generic_after_many(cls: Any, shared: Any) -> set[str]:
    """The slow instructions that are left in `add` when it has run often."""
    function = cast("FunctionType", vars(cls)["add"].__wrapped__)
    for _ in range(5_000):
        function(shared, 1)
    return {each.opname for each in dis.get_instructions(function, adaptive=True)} & GENERIC


class Base:
    """Has a private slot, as the class that comes from it."""

    __slots__ = ("__count", "first")

    def __init__(self) -> None:
        self.__count = 0
        self.first = 0

    def _add_to_count(self, by: int) -> None:
        self.__count += by

    def _count_of_base(self) -> int:
        return self.__count


@orca.shared
class Private(Base):
    """All of it is in slots."""

    __slots__ = ("__count", "__weakref__", "unset")
    unset: int

    def __init__(self) -> None:
        super().__init__()
        self.__count = 0

    @orca.write
    def add(self, by: int) -> tuple[int, int]:
        self.first += by
        self.__count += 2 * by
        self._add_to_count(by)
        return self._count_of_base(), self.__count

    @orca.write(undo=True)
    def add_and_fail(self, by: int) -> None:
        self.first += by
        self.__count += by
        self._add_to_count(by)
        raise ValueError(by)

    @orca.read
    def all(self) -> tuple[int, int, int]:
        return self._count_of_base(), self.__count, self.first


def test_what_is_in_private_slots_is_state(group: orca.Group) -> None:
    """An attribute `__count` has the name of its class in front, and its name in `__slots__` has not."""
    private = group.share(Private, "private")
    assert private.add(1) == (1, 2)
    with pytest.raises(ValueError, match="10"):
        private.add_and_fail(10)
    assert private.all() == (1, 2, 1)
    state = plain_state_of(private, info_of(private))
    assert state == {"_Base__count": 1, "_Private__count": 2, "first": 1}
    joiner = Private.__new__(Private)
    set_plain_state_of(joiner, info_of(joiner), state)
    assert joiner.all() == (1, 2, 1)


@orca.shared
class Rows:
    """Two of its attributes are one list."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {"a": []}
        self.last = self.rows["a"]

    @orca.write
    def add(self, value: int) -> tuple[list[int], list[int]]:
        self.last.append(value)
        return self.rows["a"], self.last

    @orca.write(undo=True)
    def fail(self) -> None:
        self.last.append(-1)
        raise ValueError("after a change")

    @orca.read
    def both(self) -> tuple[list[int], list[int]]:
        return self.rows["a"], self.last


def test_two_attributes_that_are_one_are_one_at_a_joiner(tmp_path: Path, order: str) -> None:
    stack = f"PACK:XFER:{order}:MBRSHIP:COM:unix"
    with orca.join(listen=f"unix:{tmp_path}/group", stack=stack) as first:
        rows = first.share(Rows, "rows")
        rows.add(1)
        with orca.join(seeds=first.address, stack=stack, timeout=30) as second:
            there = second.find(Rows, "rows")
            rows.add(2)
            second.fence()
            assert there.both() == rows.both() == ([1, 2], [1, 2])


def test_they_are_one_after_an_undo(group: orca.Group) -> None:
    rows = group.share(Rows, "rows")
    rows.add(1)
    with pytest.raises(ValueError, match="after a change"):
        rows.fail()
    assert rows.add(2) == ([1, 2], [1, 2])


def test_they_are_one_in_the_copy_that_a_write_runs_on_first(order: str) -> None:
    """Else each of its writes would be reported as one that differs from run to run."""
    with orca.join(stack=f"PACK:XFER:{order}:MBRSHIP:COM:unix", check="shadow") as group:
        rows = group.share(Rows, "rows")
        rows.add(1)
        assert rows.add(2) == ([1, 2], [1, 2])
