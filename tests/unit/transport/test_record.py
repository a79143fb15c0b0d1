"""Frozen values with named fields: as dataclasses are, without their cost at import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from orcalike.transport.record import Record


class Named(Record):
    """With a constant, which is no field."""

    kind: ClassVar[str] = "named"
    name: str


class Pair(Named):
    """Fields of its own follow those of its base."""

    number: int = 3


class Other(Record):
    """With the same fields as `Pair`, and of another kind."""

    name: str
    number: int


def test_fields_are_given_by_position_or_name() -> None:
    assert Pair("a", 1) == Pair("a", number=1) == Pair(number=1, name="a")
    assert Pair("a") == Pair("a", 3)
    assert (Pair("a").name, Pair("a").number, Pair("a").values()) == ("a", 3, ("a", 3))
    assert repr(Pair("a")) == "Pair(name='a', number=3)"


def test_values_of_another_kind_are_others() -> None:
    pair: Any = Pair("a", 1)
    assert pair != Other("a", 1)
    assert pair != ("a", 1)
    assert pair != Pair("a", 2)
    assert {Pair("a", 1), Other("a", 1), Pair("a", 1)} == {Pair("a", 1), Other("a", 1)}


def test_patterns_match_by_position_and_name() -> None:
    match Pair("a", 1):
        case Pair("a", number=number):
            assert number == 1
        case _:
            pytest.fail("it is one")


@pytest.mark.parametrize(
    ("values", "named", "says"),
    [
        ((), {}, "Pair lacks 'name'"),
        ((), {"number": 1}, "Pair lacks 'name'"),
        (("a", 1, 2), {}, "each once"),
        (("a",), {"name": "b"}, "each once"),
        (("a",), {"size": 1}, "Pair has no size"),
    ],
)
def test_each_field_is_given_once(values: Any, named: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Pair(*values, **named)


def test_they_are_frozen() -> None:
    pair: Any = Pair("a")
    with pytest.raises(AttributeError, match="'name' stays as it is"):
        pair.name = "b"
    with pytest.raises(AttributeError, match="'name' stays as it is"):
        del pair.name
    assert pair.name == "a"


def test_one_with_other_values_is_another_one() -> None:
    pair = Pair("a", 1)
    assert pair.named() == {"name": "a", "number": 1}
    assert pair.replace(number=2) == Pair("a", 2)
    assert pair == Pair("a", 1)
    with pytest.raises(TypeError, match="Pair has no size"):
        pair.replace(size=1)


def test_one_that_is_compared_by_identity_is_equal_to_itself_alone() -> None:
    class Single(Record, eq=False):
        texts: list[str]

    single = Single(["a"])
    assert single == single  # noqa: PLR0124
    assert single != Single(["a"])
    assert len({single, Single(["a"])}) == 2


def test_a_default_that_is_a_function_stays_one() -> None:
    class Asks(Record):
        ask: Callable[[str], str] = staticmethod(str.upper)

    assert Asks().ask("a") == "A"
    assert Asks() == Asks()
    with pytest.raises(TypeError, match="ask would be a method"):

        class Bound(Record):
            ask: Callable[[str], str] = lambda host: host
