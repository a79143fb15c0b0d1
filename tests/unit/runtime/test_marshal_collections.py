"""Marshalling of collections, paths and named tuples, and of plain containers of any size."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, ClassVar, NamedTuple, cast

import msgpack
import pytest
from hypothesis import given

from orcalike.runtime.errors import Unreadable
from orcalike.runtime.plain import get_value, put_bytes
from orcalike.runtime.registered import register
from orcalike.runtime.stream_decoder import decode_whole
from orcalike.runtime.stream_encoder import encode_whole
from orcalike.transport.errors import ProtocolError
from tests.lib.marshal_values import Job, codec, same, travelled, values


class Spot(NamedTuple):
    x: int
    at: Any = None


register(Spot)


@pytest.mark.parametrize(
    "value",
    [
        deque(),
        deque([1, [2], {"a": deque([3], maxlen=2)}], maxlen=5),
        OrderedDict([("b", 1), ("a", [2]), ((1, 2), OrderedDict())]),
        OrderedDict({n: n for n in range(100)}),
        Counter("abracadabra"),
        Counter({"a": -1, "b": 2.5}),
        defaultdict(list, {"a": [1]}),
        defaultdict(None, {1: 2}),
        defaultdict(Counter, a=Counter("x")),
        defaultdict(cast(Any, Job), {1: Job("x")}),
        Path("a/b"),
        PurePosixPath("/x"),
        PureWindowsPath("C:\\x"),
        Spot(1, [Spot(2)]),
        {"deep": [deque([Spot(1, Counter(a=1))])]},
    ],
    ids=lambda it: type(it).__name__,
)
def test_collections_paths_and_named_tuples(value: Any) -> None:
    arrived = travelled([value])[0]
    assert type(arrived) is type(value)
    assert arrived == value
    assert repr(arrived) == repr(value)
    streamed = decode_whole(codec, encode_whole(codec, value, "it"), "it")
    assert type(streamed) is type(value)
    assert repr(streamed) == repr(value)


def test_what_they_are_made_by_comes_too() -> None:
    kept = travelled([deque([1, 2], maxlen=2), defaultdict(list)])
    kept[0].append(3)
    kept[1]["new"].append(1)
    assert kept == [deque([2, 3]), {"new": [1]}]
    assert kept[0].maxlen == 2


def test_states_that_are_equal_have_one_encoding() -> None:
    """A Counter and a defaultdict are distinguished by what they hold, an OrderedDict by its order too."""
    first, second = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    encode = codec.encode_canonical
    assert encode(Counter(first)) == encode(Counter(second))
    assert encode(defaultdict(int, first)) == encode(defaultdict(int, second))
    assert encode(OrderedDict(first)) != encode(OrderedDict(second))


@pytest.mark.parametrize(
    ("code", "elements"),
    [
        (77, (1, 2, 3)),
        (77, ("x", 2)),
        (78, (1,)),
        (78, ((1, 2), 3, 4)),
        (79, (1,)),
        (80, (1, {})),
        (80, ("list", 3)),
        (81, ("path", 7)),
        (81, ("nothing", "x")),
        (82, (1, 2)),
    ],
)
def test_collections_that_cannot_be(code: int, elements: tuple[object, ...]) -> None:
    data = bytes(msgpack.packb((msgpack.ExtType(code, b""), *elements)))
    with pytest.raises(ProtocolError):
        codec.decode(data)


def test_a_factory_that_this_process_lacks() -> None:
    data = bytes(msgpack.packb((msgpack.ExtType(80, b""), "no:Such", {})))
    with pytest.raises(Unreadable, match="no:Such, which is not registered"):
        codec.decode(data)


@given(values)
def test_the_inline_path_agrees_with_the_library(value: object) -> None:
    """What is plain is written in place, and the same bytes are read as the same value."""
    data = put_bytes(value, room=100_000)
    if data is not None:
        assert data == codec.encode_value(value, "it")
        assert data == encode_whole(codec, value, "it")
    written = codec.encode_value(value, "it")
    assert same(decode_whole(codec, written, "it"), value)
    with contextlib.suppress(ValueError):
        assert same(get_value(written), value)


@pytest.mark.parametrize("size", [15, 16, 1023, 1025, 70_000])
def test_large_plain_containers(size: int) -> None:
    for value in (list(range(size)), tuple(range(size)), {n: [n] for n in range(size)}):
        assert travelled([value])[0] == value
        assert codec.encode_value(value, "it") == encode_whole(codec, value, "it")


def test_a_hash_that_raises_here_is_no_fault_of_the_message() -> None:
    """The sender could make that dict: code of this process stands against it."""
    data = codec.encode([{Spiteful(1): 2}], "f")
    Spiteful.spite = True
    try:
        with pytest.raises(Unreadable, match="spite"):
            codec.decode(data)
    finally:
        Spiteful.spite = False


@register
@dataclasses.dataclass(frozen=True)
class Spiteful:
    x: int
    spite: ClassVar[bool] = False

    def __hash__(self) -> int:
        if self.spite:
            raise ValueError("spite")
        return self.x
