"""Values of any size as streams: the same values, in pieces, in bounded memory, also from a liar."""

from __future__ import annotations

import datetime
import decimal
import tracemalloc
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy
import pytest

import orcalike as orca
from orcalike.errors import NotSerializable, ReplicaDivergence
from orcalike.runtime.marshal import Codec
from orcalike.runtime.stream_decoder import Decoder, decode_whole
from orcalike.runtime.stream_encoder import Encoder, encode_whole
from orcalike.transport.errors import ProtocolError

MiB = 1 << 20


@orca.register
@dataclass
class Pair:
    """Of any two."""

    one: Any
    other: Any


def codec() -> Codec:
    return Codec(lambda value: None, lambda number: number)


def pieces(value: object, size: int = 64) -> list[bytes]:
    encoder = Encoder(codec(), value, "the state", size)
    return list(iter(encoder.next_piece, None))


def fed(data: bytes, step: int) -> Any:
    decoder = Decoder(codec(), "the state")
    for begin in range(0, len(data), step):
        decoder.feed(data[begin : begin + step])
    return decoder.result()


def drawn(rng: Random, depth: int = 0) -> Any:
    leaves = [
        lambda: rng.choice((None, True, False)),
        lambda: rng.choice((0, 1, -1, 127, 128, -33, 1 << 62, 1 << 63, -(1 << 63), 1 << 200)),
        lambda: rng.random(),
        lambda: "x" * rng.choice((0, 1, 31, 32, 255, 256, 70_000)),
        lambda: "é€𝄞" * rng.choice((1, 10, 100, 9_000)),
        lambda: bytes(rng.choice((0, 1, 200, 255, 256, 65_536, 90_000))),
        lambda: bytearray(rng.choice((0, 3, 300, 70_000))),
        lambda: numpy.arange(rng.choice((0, 3, 100, 20_000)), dtype=">i4"),
        lambda: decimal.Decimal("1.5"),
        lambda: uuid.UUID(int=rng.getrandbits(128)),
        lambda: datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC),
        lambda: complex(1, 2),
    ]
    if depth > 4 or rng.random() < 0.4:
        leaf: Callable[[], Any] = rng.choice(leaves)
        return leaf()
    count = rng.choice((0, 1, 2, 5, 15, 16, 40) if depth < 2 else (0, 1, 3))
    kind = rng.choice((list, tuple, dict, set, frozenset))
    if kind in (set, frozenset):
        return kind(rng.choice((i, str(i), (i, "x" * i), frozenset({i}))) for i in range(count))
    items = [drawn(rng, depth + 1) for _ in range(count)]
    if kind is dict:
        keys = [rng.choice((i, str(i), (i, (i, "k")), b"%d" % i)) for i in range(count)]
        return dict(zip(keys, items, strict=True))
    return kind(items)


def canonical(value: object) -> bytes:
    return codec().encode_canonical(value)


@pytest.mark.parametrize("seed", range(60))
def test_what_goes_in_comes_out(seed: int) -> None:
    rng = Random(seed)
    value = drawn(rng)
    parts = pieces(value, rng.choice((64, 65, 100, 1_000, 65_536)))
    data = b"".join(parts)
    assert canonical(fed(data, rng.choice((1, 2, 7, 64, 65_536)))) == canonical(value)
    assert canonical(codec().decode(data)[0]) == canonical(value)
    assert canonical(decode_whole(codec(), data, "it")) == canonical(value)
    assert encode_whole(codec(), value, "it") == data


def in_one_place() -> dict[str, Any]:
    """A state in which nothing lies twice, and to which nothing else refers."""
    return {
        "list": [[1], (2, [3]), {4: [5]}, {6, 7}, [(8, [9])]],
        "tuple": ({"x": []}, {1, 2}, bytearray(b"x")),
        "deque": deque([[1], {2: [3]}]),
        "ordered": OrderedDict(a=[1], b={}),
        "set": {(number, frozenset({number, -number - 1})) for number in range(3)},
        "array": numpy.arange(3),
        "dataclass": Pair([1], {2: [3]}),
        "empty": [[], (), {}, set(), frozenset()],
    }


def test_what_lies_in_one_place_costs_nothing_in_a_state() -> None:
    """No byte more, so no memory: else each of a million lists would be noted."""
    value = in_one_place()
    assert encode_whole(codec(), value, "it", is_state=True) == encode_whole(codec(), value, "it")


@pytest.mark.parametrize("size", [64, 65_536])
@pytest.mark.parametrize("step", [1, 7, 65_536])
@pytest.mark.parametrize("kind", list(in_one_place()))
def test_what_lies_in_several_places_of_a_state_is_one(kind: str, size: int, step: int) -> None:
    one = in_one_place()[kind]
    inner = [one, "inner"]
    value = {
        "first": one,
        "list": [one, inner, inner],
        "tuple": ((one, inner), "x" * 20_000, 1 << 100),
        "dict": {(1, "k"): one, 2: {3: inner}},
        "deque": deque([one, inner]),
        "ordered": OrderedDict(a=one, b=inner),
        "dataclass": Pair(inner, one),
        "last": one,
    }
    encoder = Encoder(codec(), value, "the state", size, is_state=True)
    found = fed(b"".join(iter(encoder.next_piece, None)), step)
    assert canonical(found) == canonical(value)
    again = found["list"][1]
    ones = [found["first"], found["list"][0], found["tuple"][0][0], found["dict"][1, "k"]]
    ones += [found["deque"][0], found["ordered"]["a"], found["dataclass"].other, found["last"]]
    ones += [again[0]]
    inners = [found["list"][2], found["tuple"][0][1], found["dict"][2][3], found["deque"][1]]
    inners += [found["ordered"]["b"], found["dataclass"].one]
    assert all(each is ones[0] for each in ones)
    assert all(each is again for each in inners)


def test_a_state_that_holds_itself_is_refused() -> None:
    knot: list[object] = []
    knot.append((knot,))
    with pytest.raises(NotSerializable, match="nested too deep"):
        encode_whole(codec(), {"a": knot}, "the state", is_state=True)


def test_pieces_are_bounded() -> None:
    value = {"a": b"x" * 1_000_000, "b": ["y" * 1_000] * 1_000, "c": numpy.zeros(100_000)}
    parts = pieces(value, 4_096)
    assert max(map(len, parts)) <= 4_096
    assert sum(map(len, parts)) > 2_000_000


def test_an_array_that_does_not_lie_in_order() -> None:
    array = numpy.arange(60_000, dtype="f8").reshape(200, 300)[::2, ::-3]
    found = fed(b"".join(pieces(array, 4_096)), 1_000)
    assert (found == array).all()
    assert found.shape == array.shape
    assert found.flags.writeable
    assert found.flags.owndata


def test_an_error_names_the_place() -> None:
    with pytest.raises(NotSerializable, match=r'the state, \["a"\]\[3\]\[1\]: .* cannot travel'):
        pieces({"a": [0, 1, 2, (0, object())]})
    with pytest.raises(NotSerializable, match=r"the state, key <tuple>\[0\]: "):
        pieces({(object(),): 1})
    with pytest.raises(NotSerializable, match="lone surrogate"):
        pieces(["é" * 20_000 + "\ud800"])
    knot: list[object] = []
    knot.append(knot)
    with pytest.raises(NotSerializable, match="nested too deep"):
        pieces(knot)


def test_a_value_that_changes_meanwhile_is_an_error() -> None:
    value = {number: number for number in range(1_000)}
    encoder = Encoder(codec(), value, "the state", 64)
    encoder.next_piece()
    del value[999]
    with pytest.raises(NotSerializable, match="changed"):
        list(iter(encoder.next_piece, None))
    items = list(range(1_000))
    encoder = Encoder(codec(), items, "the state", 64)
    encoder.next_piece()
    items.append(1)
    with pytest.raises(NotSerializable, match="changed"):
        list(iter(encoder.next_piece, None))


def test_a_large_value_is_not_copied_to_be_cut() -> None:
    value = [b"x" * 8 * MiB, bytearray(8 * MiB), numpy.zeros(MiB), "x" * 8 * MiB, "é" * 4 * MiB]
    encoder = Encoder(codec(), value, "the state", 65_536)
    tracemalloc.start()
    while encoder.next_piece() is not None:
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MiB


LIES = {
    "a list of 4 billion": b"\xdd\xff\xff\xff\xff\xc7\x00\x40",
    "a tuple of 4 billion": b"\xdd\xff\xff\xff\xff",
    "a dict of 4 billion": b"\xdf\xff\xff\xff\xff",
    "a set of 4 billion": b"\xdd\xff\xff\xff\xff\xc7\x00\x41",
    "bytes of 4 GiB": b"\xc6\xff\xff\xff\xff",
    "text of 4 GiB": b"\xdb\xff\xff\xff\xff",
    "a bytearray of 4 GiB": b"\xc9\xff\xff\xff\xff\x05",
}


@pytest.mark.parametrize("name", LIES)
def test_a_false_length_makes_nothing(name: str) -> None:
    decoder = Decoder(codec(), "the state")
    tracemalloc.start()
    decoder.feed(LIES[name])
    for _ in range(100):
        decoder.feed(b"\x01" * 1_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 100_000
    with pytest.raises(ProtocolError, match="cut short"):
        decoder.result()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x91" * 33, "nested too deep"),
        (b"\xc1", "a type that is not known"),
        (b"\xca\x00\x00\x00\x00", "a type that is not known"),
        (b"\xc7\x00\x40", "a tag where none may be"),
        (b"\x92\x01\xc7\x00\x40", "a tag where none may be"),
        (b"\xc7\x01\x3f\x00", "a type that is not known"),
        (b"\xc7\x01\x3e\x00", "a note where none may be"),
        (b"\xc7\x00\x3e\xc7\x00\x3e\x90", "a note where none may be"),
        (b"\xc7\x00\x3e", "cut short"),
        (b"\xc7\x01\x3d\x00", "a part that cannot be"),
        (b"\x92\xc7\x00\x3e\x91\x01\xc7\x01\x3d\x01", "a part that cannot be"),
        (b"\xc7\x00\x3e\x91\xc7\x01\x3d\x00", "a part that cannot be"),
        (b"\x01\x01", "more bytes than it may"),
        (b"\x81\x92\xc7\x00\x40\x01\x01", "a key that cannot be"),
        (b"\x82\x01\x01\x01\x01", "two keys that are the same"),
        (b"\xa2\xff\xff", "a part that cannot be"),
        (b"\xc7\x03\x04abc", "a part that cannot be"),
        (b"\x92\xc7\x00\x43\x01", "a part that cannot be"),
    ],
)
def test_what_is_malformed_is_refused(data: bytes, why: str) -> None:
    for step in (1, len(data)):
        with pytest.raises(ProtocolError, match=why):
            fed(data, step)


def result_of(data: bytes, step: int) -> object:
    """What these bytes are, fed in pieces of so many; or which error they are."""
    try:
        return canonical(fed(data, step))
    except (ProtocolError, ReplicaDivergence) as error:
        return type(error)


def test_random_bytes_come_to_the_same_in_any_pieces() -> None:
    rng = Random(9)
    results = []
    for _ in range(3_000):
        data = rng.randbytes(rng.randint(1, 60))
        if rng.random() < 0.5:
            whole = b"".join(pieces(drawn(Random(rng.randint(0, 30)), 4)))[:4_000]
            at = rng.randint(0, len(whole))
            data = whole[:at] + data[:2] + whole[at + 1 :]
        one, *others = (result_of(data, step) for step in (1, 5, 100))
        assert others == [one, one], data
        results.append(one)
    assert results.count(ProtocolError) < len(results)
