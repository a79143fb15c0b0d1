"""Marshalling: what travels arrives as what it was, and what cannot travel says where and why."""

from __future__ import annotations

import dataclasses
import enum
import math
import os
import subprocess
import sys
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta
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

from orcalike.runtime.errors import DeclarationError
from orcalike.runtime.extension_codes import Code
from orcalike.runtime.plain import get_value, put_bytes
from orcalike.runtime.registered import import_name, register
from tests.lib.marshal_values import (
    NAN_WITH_PAYLOAD,
    OBJECTS,
    Access,
    Colour,
    Job,
    Point,
    codec,
    keys,
    nested,
    same,
    simple,
    travelled,
    values,
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


@pytest.mark.parametrize("number", [0, 7, 255, 256, 70_000, 2**40])
def test_a_reference_is_as_short_as_the_library_writes_it(number: int) -> None:
    payload = number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
    data = codec.encode([1, OBJECTS[number], "x"], "f")
    assert data == b"\x01" + msgpack.packb(msgpack.ExtType(Code.REFERENCE, payload)) + b"\xa1x"
    assert codec.decode(data) == [1, OBJECTS[number], "x"]


def test_a_mutable_value_arrives_as_a_new_one_each_time() -> None:
    data = codec.encode([[1], bytearray(b"x")], "f")
    first, second = codec.decode(data), codec.decode(data)
    assert first == second
    assert all(one is not other for one, other in zip(first, second, strict=True))


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
        "from orcalike.runtime.registered import import_name\n"
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
