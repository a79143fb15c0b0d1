"""Marshalling refuses what cannot travel, with the path to it, and bytes that are no values."""

from __future__ import annotations

import io
import socket
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orcalike.runtime.errors import NotSerializable, Unreadable
from orcalike.runtime.marshal import Codec
from orcalike.runtime.registered import import_name
from orcalike.transport.errors import ProtocolError
from tests.lib.marshal_values import (
    OBJECTS,
    Access,
    Colour,
    Job,
    Link,
    Token,
    Unregistered,
    codec,
    nested,
    reference_of,
    travelled,
    values,
)


class Registry(dict[str, int]):
    pass


# --- what does not travel


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
        (io.StringIO("text"), r"pass what it holds: value\.read\(\)"),
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
