"""Values of every kind that travels, drawn by hypothesis, and a codec for them."""

from __future__ import annotations

import dataclasses
import enum
import struct
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from orcalike.runtime.marshal import Codec
from orcalike.runtime.registered import register


@register
class Colour(enum.Enum):
    RED = "red"
    BLUE = (0, 0, 255)


@register
class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@register
@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float


@register
@dataclasses.dataclass(slots=True)
class Job:
    name: str
    at: Point | None = None
    parts: list[Any] = dataclasses.field(default_factory=list)
    runs: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        self.runs += 1


@dataclasses.dataclass
class Unregistered:
    x: int


@register
@dataclasses.dataclass(eq=False)
class Token:
    x: int


@register
@dataclasses.dataclass
class Link:
    to: object = None


class Shared:
    """Stands for a shared object: the codec sees only its id."""

    def __init__(self, number: int) -> None:
        self.number = number


OBJECTS = {number: Shared(number) for number in (0, 7, 255, 256, 70_000, 2**40)}


def reference_of(value: object) -> int | None:
    return value.number if isinstance(value, Shared) else None


codec = Codec(reference_of, OBJECTS.__getitem__)


def travelled(value: object) -> Any:
    """The value as it arrives; its encoding also decodes among others."""
    data = codec.encode_value(value, "it")
    assert codec.decode(codec.encode([1, value, "z"], "f")) != []
    (arrived,) = codec.decode(memoryview(data))
    return arrived


def same(left: object, right: object) -> bool:
    """Whether two values are of the same types with the same bits, all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, complex):
        assert isinstance(right, complex)
        return same((left.real, left.imag), (right.real, right.imag))
    if isinstance(left, (list, tuple)):
        assert isinstance(right, (list, tuple))
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        assert isinstance(right, dict)
        return same(list(left.items()), list(right.items()))
    if isinstance(left, (set, frozenset)):
        # Elements are hashable, and equal ones of different types print differently.
        assert isinstance(right, (set, frozenset))
        return sorted(map(repr, left)) == sorted(map(repr, right))
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left)]
        return all(same(getattr(left, name), getattr(right, name)) for name in names)
    return left == right


NAN_WITH_PAYLOAD = struct.unpack(">d", bytes.fromhex("7ff8dead0000beef"))[0]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([s * 2**b + d for b in (5, 7, 8, 15, 16, 31, 32, 63) for s in (-1, 1)
                       for d in (-1, 0, 1) if -(2**63) <= s * 2**b + d < 2**64])
    | st.floats()
    | texts
    | st.binary(max_size=300)
)  # fmt: skip
tuples = st.lists(scalars, max_size=15).map(tuple)
simple = scalars | tuples | st.lists(scalars | tuples, max_size=15).map(tuple)

zones = st.sampled_from(
    [
        None,
        UTC,
        timezone(timedelta(hours=-3, minutes=-30)),
        timezone(timedelta(hours=1), "CET"),
        ZoneInfo("Europe/Berlin"),
    ]
)
moments = st.builds(
    lambda it, zone, fold: it.replace(tzinfo=zone, fold=fold),
    st.datetimes(),
    zones,
    st.integers(0, 1),
)
extras = (
    st.integers()
    | st.integers(2**64, 2**200)
    | st.complex_numbers()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | moments
    | st.dates()
    | st.timedeltas()
    | st.sampled_from([*Colour, Access.READ | Access.WRITE, Access(0)])
    | st.sampled_from(sorted(OBJECTS)).map(OBJECTS.__getitem__)
)
keys = st.text(max_size=5) | st.integers() | st.tuples(st.integers(), st.text(max_size=3))
values = st.recursive(
    scalars | extras,
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.lists(inner, max_size=20).map(tuple)
        | st.dictionaries(keys, inner, max_size=5)
        | st.sets(keys, max_size=5)
        | st.frozensets(keys, max_size=5)
        | st.builds(Link, inner)
    ),
    max_leaves=20,
)


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value
