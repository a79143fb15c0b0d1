"""Marshalling: what travels arrives as what it was, and what cannot travel says where and why."""

from __future__ import annotations

import dataclasses
import enum
import math
import os
import socket
import struct
import subprocess
import sys
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
import numpy
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from orcalike.runtime import extension_types
from orcalike.runtime.errors import DeclarationError, NotSerializable, Unreadable
from orcalike.runtime.extension_types import import_name, register
from orcalike.runtime.marshal import Codec
from orcalike.runtime.plain import get_value, put_bytes
from orcalike.transport.errors import ProtocolError


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


# --- the hot path


@given(simple)
@example(NAN_WITH_PAYLOAD)
@example(-0.0)
@example("x" * 70_000)
@example(b"x" * 70_000)
@example(((),) * 15)
def test_simple_values_are_msgpack_in_its_smallest_form(value: object) -> None:
    data = put_bytes(value, room=100_000)
    assert data == msgpack.packb(value)
    assert data == codec.encode_value(value, "it")
    assert same(get_value(data), value)
    assert same(codec.decode(data), [value])


@given(simple)
def test_put_writes_into_exactly_the_room_there_is(value: object) -> None:
    data = msgpack.packb(value)
    assert put_bytes(value, room=len(data)) == data
    assert all(put_bytes(value, room=room) is None for room in range(min(len(data), 400)))


@given(simple)
def test_get_gives_up_on_whatever_is_cut_short(value: object) -> None:
    data = msgpack.packb(value)
    for size in range(min(len(data), 400)):
        with pytest.raises(ValueError, match="not a simple value"):
            get_value(data[:size])


@pytest.mark.parametrize(
    "value",
    [2**64, -(2**63) - 1, "\ud800", set(), [{1: 2**64}], ["x" * 5000], [[[[[[[[[1]]]]]]]]],
     Access.READ, numpy.float64(1.5), bytearray(b"x"), OrderedDict(), object()],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)  # fmt: skip
def test_put_leaves_to_the_codec_what_is_not_plain(value: object) -> None:
    assert put_bytes(value) is None


def test_put_takes_no_subclass_for_its_base() -> None:
    class Level(enum.IntEnum):
        LOW = 1

    class Name(str):
        pass

    class Pair(tuple):  # type: ignore[type-arg]
        pass

    assert [put_bytes(value) for value in (Level.LOW, Name("x"), Pair((1, 2)))] == [None] * 3


@given(st.binary(max_size=40))
def test_get_agrees_with_the_library(data: bytes) -> None:
    try:
        value = get_value(data)
    except ValueError:
        return
    assume(b"\xc7\0\x40" not in data)  # a list, which the library does not know
    assert same(value, msgpack.unpackb(data, use_list=False, strict_map_key=False))


# --- what travels


@given(values)
def test_values_arrive_as_what_they_were(value: object) -> None:
    assert same(travelled(value), value)


@given(st.lists(values, max_size=5))
def test_many_values_are_encoded_one_after_the_other(many: list[object]) -> None:
    data = codec.encode(many, "f")
    assert data == b"".join(codec.encode_value(value, "it") for value in many)
    assert same(codec.decode(data), many)


@pytest.mark.parametrize("value", [float("nan"), NAN_WITH_PAYLOAD, -0.0, math.inf, -math.inf])
def test_floats_keep_their_bits(value: float) -> None:
    assert same(travelled([value, complex(value, -value)]), [value, complex(value, -value)])


@pytest.mark.parametrize(
    "value",
    [
        Decimal("-0"), Decimal("1.10"), Decimal("sNaN12"), Decimal("-Infinity"), Decimal("1E+999"),
        time(1, 2, 3, 4, fold=1), time(5, tzinfo=UTC), UTC,
        bytearray(b""), bytearray(b"\x00\xff"), UUID(int=5), date(1, 1, 1), datetime.max,
    ],
    ids=repr,
)  # fmt: skip
def test_the_standard_library_s_values(value: object) -> None:
    arrived = travelled(value)
    assert type(arrived) is type(value)
    assert repr(arrived) == repr(value)


def test_aware_times_keep_fold_and_zone() -> None:
    ambiguous = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    arrived = travelled(ambiguous)
    assert (arrived.fold, arrived.tzinfo) == (1, ZoneInfo("Europe/Berlin"))
    assert arrived.utcoffset() == timedelta(hours=1)


def test_registered_classes() -> None:
    job = Job("a", Point(1.0, -0.0), [Colour.BLUE, Access.READ | Access.WRITE, (Point(2, 3),)])
    arrived = travelled(job)
    assert arrived == job
    assert arrived.runs == 1  # __post_init__ did not run again
    assert arrived.parts[0] is Colour.BLUE
    assert travelled({Point(1, 2): {Point(3, 4)}}) == {Point(1, 2): {Point(3, 4)}}


def test_shared_objects_travel_as_references() -> None:
    shared = OBJECTS[70_000]
    arrived = travelled({"a": [shared], shared: 1})
    assert arrived["a"][0] is shared
    assert arrived[shared] == 1


def test_a_mutable_value_arrives_as_a_new_one_each_time() -> None:
    data = codec.encode([[1], bytearray(b"x")], "f")
    first, second = codec.decode(data), codec.decode(data)
    assert first == second
    assert all(one is not other for one, other in zip(first, second, strict=True))


# --- NumPy


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(24, dtype="i4").reshape(2, 3, 4),
        numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
        numpy.arange(10, dtype="u2")[::-3],
        numpy.array([True, False]),
        numpy.array([1 + 2j, numpy.nan], dtype="c8"),
        numpy.array([1.5, -0.0], dtype=">f8"),
        numpy.array(3.0),
        numpy.empty((0, 5), dtype="f2"),
        numpy.array(["text", "ünïcode", ""]),
        numpy.array([["a", "b"], ["c", "𝄞"]], dtype=">U7"),
        numpy.array([b"bytes", b""]),
        numpy.array(["", ""], dtype="U0"),
        numpy.array(["2024-01-01", "NaT"], dtype="M8[D]"),
        numpy.array([1, 2], dtype=">m8[25us]"),
        numpy.array([3], dtype="m8"),
    ],
    ids=lambda it: f"{it.dtype}{it.shape}",
)
def test_arrays_arrive_fresh_writable_and_in_c_order(array: Any) -> None:
    array.flags.writeable = False
    arrived = travelled(array)
    assert arrived.dtype == array.dtype
    assert arrived.shape == array.shape
    assert arrived.tobytes() == array.tobytes()
    assert arrived.flags.writeable
    assert arrived.flags.c_contiguous
    assert arrived.base is None


@pytest.mark.parametrize(
    "scalar",
    [
        numpy.float64(-0.0),
        numpy.int8(-3),
        numpy.bool_(True),
        numpy.str_("ä"),
        numpy.bytes_(b"x"),
        numpy.array("2024-01-01T00", "M8[25us]")[()],
        numpy.timedelta64("NaT", "D"),
    ],
)
def test_numpy_scalars(scalar: Any) -> None:
    arrived = travelled([scalar])[0]
    assert type(arrived) is type(scalar)
    assert arrived.tobytes() == scalar.tobytes()


@pytest.mark.parametrize(
    "array",
    [numpy.array([object()]), numpy.zeros(2, dtype=[("a", "i4")]), numpy.zeros(2, dtype="g"),
     numpy.zeros(2, dtype="V3")],
    ids=lambda it: str(it.dtype),
)  # fmt: skip
def test_other_numpy_types_do_not_travel(array: Any) -> None:
    with pytest.raises(NotSerializable, match=r"argument 1 of f: .*(cannot travel|only a plain)"):
        codec.encode([array], "f")


def test_numpy_is_not_imported_for_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy")
    assert travelled([1, {2.0}, UUID(int=1)]) == [1, {2.0}, UUID(int=1)]
    assert "numpy" not in sys.modules


@pytest.mark.parametrize("rest", [b"", b"\x01"])
def test_what_this_process_lacks_is_its_own_matter(
    monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    """It is no fault of the message, and which of the values it is is known."""
    data = codec.encode([7, numpy.zeros(3)], "f") + rest
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(Unreadable, match="install it for all processes") as caught:
        codec.decode(data)
    assert (caught.value.argument, caught.value.values) == (2, (7,))


def numpy_payload(dtype: bytes, shape: tuple[int, ...], data: bytes) -> bytes:
    sizes = len(dtype), len(shape)
    payload = struct.pack(f">BB{len(dtype)}s{len(shape)}Q", *sizes, dtype, *shape) + data
    return bytes(msgpack.packb(msgpack.ExtType(extension_types.Code.NUMPY_ARRAY, payload)))


@pytest.mark.parametrize(
    "data",
    [
        numpy_payload(b"|O", (1,), b"\0" * 8),
        numpy_payload(b"<f8", (2,), b"\0" * 8),
        numpy_payload(b"<f8", (2**63, 2), b""),
        numpy_payload(b"<f8", (2**61,), b"\0" * 8),
        numpy_payload(b"<f8", (0, 2**64 - 1), b""),
        numpy_payload(b"<f8", (1,) * 200, b"\0" * 8),
        numpy_payload(b"f8", (1,), b"\0" * 8),
        numpy_payload(b"\xff\xff", (1,), b"\0" * 8),
        numpy_payload(b"<U1", (1,), b"\xff" * 4),
        numpy_payload(b">U1", (1,), b"\0\x11\0\0"),
        numpy_payload(b"<U99999999999", (0,), b""),
        numpy_payload(b"<M8[xs]", (1,), b"\0" * 8),
        numpy_payload(b"<V4", (1,), b"\0" * 4),
        msgpack.packb(msgpack.ExtType(extension_types.Code.NUMPY_ARRAY, b"\x03\x05<f8")),
        msgpack.packb(msgpack.ExtType(extension_types.Code.NUMPY_ARRAY, b"\x03")),
        msgpack.packb(msgpack.ExtType(extension_types.Code.NUMPY_ARRAY, b"")),
    ],
)
def test_an_array_that_is_not_one_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        codec.decode(data)


def test_a_bool_array_holds_bools_alone() -> None:
    (array,) = codec.decode(numpy_payload(b"|b1", (3,), b"\x00\x01\x07"))
    assert isinstance(array, numpy.ndarray)
    assert array.tobytes() == b"\x00\x01\x01"


class Registry(dict[str, int]):
    pass


# --- what does not travel


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (socket.socket, r'argument 2 of Queue.put: <class \'type\'> cannot travel; pass its name'),
        ({"a": [0, 1, 2, object()]}, r'argument 2 of Queue.put, \["a"\]\[3\]: <class \'object\'> '),
        ({(1, 2): object()}, r"argument 2 of Queue.put, \[<tuple>\]: "),
        ({object(): 1}, r"argument 2 of Queue.put, key <object>: "),
        ([{object()}], r"argument 2 of Queue.put, \[0\] element <object>: "),
        ([Job("a", parts=[len])], r"argument 2 of Queue.put, \[0\].parts\[0\]: .*pass its name"),
        (Unregistered(1), r"argument 2 of Queue.put: .*Unregistered'> cannot travel; register"),
        (Registry(), r"only a plain dict does"),
        (deque([1, object()]), r"argument 2 of Queue.put, \[1\]: "),
        (OrderedDict(a=object()), r"argument 2 of Queue.put, \['a'\]: "),
        (defaultdict(list, a=object()), r"argument 2 of Queue.put, \[\"a\"\]: "),
        (defaultdict(lambda: 1), r"defaultdict\(list\), or a registered class"),
        (iter([1]), r"pass list\(value\)"),
        (Job.__new__(Job), r"argument 2 of Queue.put: a field is not set"),
        (memoryview(b""), r"pass bytes\(value\)"),
        (msgpack.ExtType(64, b""), r"only a plain tuple does"),
        ("a\ud800", r"argument 2 of Queue.put: text with a lone surrogate cannot travel"),
        ({"\ud800": 1}, r'argument 2 of Queue.put, key "\\ud800": text with a lone surrogate'),
        ({Token(1): 1, Token(2): 2}, None),
        ({Token(1): 1, Token(1): 2}, r"two keys of this dict are the same"),
    ],
    ids=lambda it: None if isinstance(it, str) else type(it).__name__,
)  # fmt: skip
def test_the_path_to_what_cannot_travel(value: object, message: str | None) -> None:
    if message is None:
        codec.encode([0, value], "Queue.put")
        return
    with pytest.raises(NotSerializable, match=message):
        codec.encode([0, value], "Queue.put")


def test_what_contains_itself_ends_at_the_depth_limit() -> None:
    loop: list[object] = []
    loop.append(loop)
    link = Link()
    link.to = link
    holder: dict[str, object] = {}
    holder["in"] = (holder,)
    token = Token(1)
    token.x = frozenset([token])  # type: ignore[assignment]
    for value in (loop, link, holder, {token}):
        with pytest.raises(NotSerializable, match=r"f, .*\.\.\.: nested too deep, or it contains"):
            codec.encode([value], "f")


@pytest.mark.parametrize(
    "wrap",
    [lambda it: [it], lambda it: (it,), lambda it: {1: it}, lambda it: frozenset([it]), Link],
    ids=["list", "tuple", "dict", "frozenset", "dataclass"],
)
def test_the_depth_limit_is_the_same_on_both_sides(wrap: Callable[[Any], Any]) -> None:
    deep = Codec(reference_of, OBJECTS.__getitem__, max_depth=33)
    allowed, refused = nested(32, wrap), nested(33, wrap)
    assert codec.decode(codec.encode_value(allowed, "it")) == [allowed]
    with pytest.raises(NotSerializable, match="nested too deep"):
        codec.encode_value(refused, "it")
    with pytest.raises(ProtocolError, match="nested too deep"):
        codec.decode(deep.encode_value(refused, "it"))


def test_the_size_limit_is_the_same_on_both_sides() -> None:
    small = Codec(reference_of, OBJECTS.__getitem__, max_bytes=100)
    data = small.encode_value(b"x" * 98, "it")
    assert small.decode(data) == [b"x" * 98]
    with pytest.raises(NotSerializable, match="the arguments of f: 101 bytes, and at most 100"):
        small.encode([b"x" * 98, 1], "f")
    with pytest.raises(ProtocolError, match="101 bytes of values arrived; at most 100"):
        small.decode(data + b"\x01")


def test_a_codec_goes_on_after_a_failure() -> None:
    for _ in range(3):
        with pytest.raises(NotSerializable):
            codec.encode([{1: object()}], "f")
        with pytest.raises(ProtocolError):
            codec.decode(b"\xa1\xff")
        assert travelled([1, {"a": {2}}]) == [1, {"a": {2}}]


# --- what arrives and cannot be believed


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    try:
        arrived = codec.decode(data)
    except (ProtocolError, Unreadable):
        return
    assert isinstance(arrived, list)


@given(values, st.data())
def test_damaged_bytes_are_refused_or_read(value: object, data: st.DataObject) -> None:
    encoding = bytearray(codec.encode_value(value, "it"))
    for _ in range(data.draw(st.integers(1, 3))):
        encoding[data.draw(st.integers(0, len(encoding) - 1))] = data.draw(st.integers(0, 255))
    try:
        arrived = codec.decode(bytes(encoding[: data.draw(st.integers(0, len(encoding)))]))
    except (ProtocolError, Unreadable):
        return
    assert isinstance(arrived, list)


def tag(code: int) -> bytes:
    return bytes([0xC7, 0, code])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xdd\xff\xff\xff\xff", "cut short"),
        (b"\xdf\x80\x00\x00\x00" + b"\x01" * 20, "cut short"),
        (b"\xc6\xff\xff\xff\xffx", "cut short"),
        (b"\xdb\xff\xff\xff\xffx", "cut short"),
        (b"\xc9\xff\xff\xff\xff\x01", "cut short"),
        (b"\xd9", "cut short"),
        (b"\xc7\x00", "cut short"),
        (b"\x01\xa2x", "value at byte 1 of 3 is cut short"),
        (b"\xc1", "not known"),
        (b"\xd4\x00\x00", "not known"),
        (b"\xd4\x7fx", "not known"),
        (b"\xd6\xff\x00\x00\x00\x00", "not known"),
        (b"\x91" * 33 + b"\x01", "too deep"),
        (b"\x81\x01" * 33 + b"\x01", "too deep"),
        (tag(64), "not known"),
        (b"\x92\x01" + tag(64), "not known"),
        (b"\x81\x01" + tag(64), "not known"),
        (b"\x91\xd4\x40\x00", "not known"),
        (b"\x92" + tag(64) + tag(64), "not known"),
        (b"\xa2\xed\xa0", "cannot be read: UnicodeDecodeError"),
        (b"\xa3\xed\xa0\x80", "cannot be read: UnicodeDecodeError"),
        (b"\x81\x91" + tag(64) + b"\x01", "cannot be read: TypeError"),
        (b"\x92" + tag(65) + b"\x91" + tag(64), "cannot be read: TypeError"),
        (b"\xd4\x03x", "cannot be read: InvalidOperation"),
        (b"\xd4\x04x", "cannot be read: ValueError"),
        (b"\xd4\x08\x09", "cannot be read: KeyError"),
        (b"\x94" + tag(67) + b"\x01\x0d\x01", "cannot be read: ValueError"),
        (b"\x94" + tag(70) + b"\xce\xff\xff\xff\xff\x01\x01", "cannot be read: OverflowError"),
        (b"\x92" + tag(72) + b"\xa9../passwd", "a zone '../passwd' arrived"),
        (b"\x92" + tag(72) + b"\xa7/passwd", "a zone '/passwd' arrived"),
        (b"\x93" + tag(73) + b"\x01\x01", "a class named 1 arrived"),
    ],
)
def test_malformed_bytes(data: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        codec.decode(data)


def test_a_class_of_another_kind_or_version() -> None:
    name = import_name(Job)

    def tagged(code: int, *elements: object) -> bytes:
        return bytes(msgpack.packb((msgpack.ExtType(code, b""), *elements)))

    with pytest.raises(Unreadable, match="with other fields than name, at, parts, runs"):
        codec.decode(tagged(75, name, 1, 2, 3, 4, 5))
    with pytest.raises(Unreadable, match="another kind of class"):
        codec.decode(tagged(73, name, "RED"))
    with pytest.raises(Unreadable, match="another kind of class"):
        codec.decode(tagged(75, import_name(Colour), 0))
    with pytest.raises(Unreadable, match="GREEN, which does not exist here"):
        codec.decode(tagged(73, import_name(Colour), "GREEN"))
    with pytest.raises(Unreadable, match="a:B, which is not registered in this process"):
        codec.decode(tagged(73, "a:B", "RED"))
    with pytest.raises(ProtocolError, match="a member 1 of"):
        codec.decode(tagged(73, import_name(Colour), 1))
    with pytest.raises(Unreadable, match="other flags"):
        codec.decode(tagged(74, import_name(Access), 1 << 20))
    with pytest.raises(ProtocolError, match="flags 'x' of"):
        codec.decode(tagged(74, import_name(Access), "x"))


def test_a_zone_that_is_in_no_database_is_refused_where_it_is_sent(tmp_path: Path) -> None:
    source = next(Path(path, "UTC") for path in zoneinfo.TZPATH if Path(path, "UTC").exists())
    with source.open("rb") as file:
        zone = zoneinfo.ZoneInfo.from_file(file, key="Nowhere/Here")
    with pytest.raises(NotSerializable, match="made from a file"):
        codec.encode([zone], "f")


# --- the same bytes everywhere


@given(st.lists(keys, unique=True, max_size=10), st.randoms())
def test_the_canonical_encoding_does_not_depend_on_the_order(names: list[Any], rng: Any) -> None:
    shuffled = rng.sample(names, len(names))
    assert codec.encode_canonical([{name: {name: 1, None: 2} for name in names}, set(names)]) == (
        codec.encode_canonical([{name: {None: 2, name: 1} for name in shuffled}, set(shuffled)])
    )


def test_a_dict_keeps_its_order_but_in_the_canonical_encoding() -> None:
    value = {"b": 1, "a": 2}
    assert list(travelled(value)) == ["b", "a"]
    assert codec.encode_canonical(value) == codec.encode_value({"a": 2, "b": 1}, "it")


def test_deeply_nested_sets_take_no_longer_than_they_must() -> None:
    value = nested(32, lambda it: frozenset([it, 1, 2]))
    assert travelled(value) == value


def test_sets_are_encoded_alike_whatever_the_hash_seed() -> None:
    program = (
        "from orcalike.runtime.marshal import Codec\n"
        "names = {f'name {n}' for n in range(50)} | {(n, str(n)) for n in range(50)}\n"
        "print(Codec(lambda it: None, None).encode([names], 'f').hex())\n"
    )
    encodings = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(encodings) == 1


# --- registration and names


def test_only_enums_and_dataclasses_can_be_registered() -> None:
    class Plain:
        pass

    @dataclasses.dataclass
    class Table(dict[str, int]):
        x: int

    with pytest.raises(DeclarationError, match="only enums, dataclasses and NamedTuples"):
        register(Plain)
    with pytest.raises(DeclarationError, match="__new__ of its own or of a base"):
        register(Table)


def test_import_name() -> None:
    assert import_name(Job) == f"{Job.__module__}:Job"
    assert import_name(Job.__post_init__) == f"{Job.__module__}:Job.__post_init__"


@pytest.mark.parametrize(
    ("how", "name"),
    [(["jobs.py"], "jobs:Job"), (["-m", "jobs"], "jobs:Job"),
     (["-m", "pack.jobs"], "pack.jobs:Job"), (["-c", "import runpy; import jobs"], "jobs:Job")],
    ids=["script", "module", "module of a package", "import"],
)  # fmt: skip
def test_main_counts_as_the_program_s_import_name(
    tmp_path: Path, how: list[str], name: str
) -> None:
    program = (
        "from orcalike.runtime.extension_types import import_name\n"
        "class Job: pass\n"
        "print(import_name(Job))\n"
    )
    (tmp_path / "pack").mkdir()
    for path in ("jobs.py", "pack/jobs.py", "pack/__init__.py"):
        (tmp_path / path).write_text("" if path.endswith("__init__.py") else program)
    done = subprocess.run(
        [sys.executable, *how],
        env=os.environ | {"PYTHONPATH": ":".join([str(tmp_path), *sys.path])},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == name
