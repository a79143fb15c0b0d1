"""Digests of states: equal for equal states in any process, and within a bound of work."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import OrderedDict, deque
from typing import Any, NamedTuple

import pytest

from orcalike.runtime.audit import has_made_dict, values_of
from orcalike.runtime.marshal import Codec
from orcalike.runtime.state_digest import BYTES_PER_VALUE, ROOM, Look

STATES = """
import datetime, decimal, enum, pathlib, random, sys, uuid
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field

import numpy

import orcalike as orca
from orcalike.runtime.marshal import Codec
from orcalike.runtime.state_digest import Look


@orca.register
@dataclass
class Point:
    x: float
    names: set = field(default_factory=set)


@orca.register
class Colour(enum.Enum):
    RED = 1


names = [f"name {number}" for number in range(50)]
random.Random(int(sys.argv[1])).shuffle(names)
long = [sys.intern("x" * 3), "".join(["x", "xx"])]
states = [
    {"names": set(names), "by": {name: len(name) for name in names}, "frozen": frozenset(names)},
    {"points": {name: Point(0.5, set(names)) for name in names}},
    {"sets": {frozenset(names[:0] + [str(i)]) for i in range(50)}, "mixed": {1, "a", 2.5, None}},
    {"array": numpy.arange(1000, dtype="f4"), "part": numpy.arange(2000)[::2], "one": numpy.int8(3)},
    {"big": numpy.arange(10**6), "text": "x" * 10**6, "bytes": bytes(10**6), "list": [1] * 10**5},
    {"a": Colour.RED, "d": decimal.Decimal("1.50"), "u": uuid.UUID(int=5), "p": pathlib.Path("/a")},
    {"t": datetime.datetime(2020, 1, 1), "n": float("nan"), "z": -0.0, "i": 2**90, "s": long},
    {"c": Counter(sorted(names)), "o": OrderedDict([(1, 2), (0, 1)]), "q": deque([1, [2]], 5),
     "f": defaultdict(list, {name: [name] for name in names})},
    {"many": {number: set(names) for number in range(5000)}, "some": [set(names)] * 300},
]
codec = Codec(lambda value: None, lambda number: None)
for state in states:
    for most in (None, 4096, 300):
        print(Look(codec, most, 7).digest(state).hex())
"""


def test_equal_states_have_equal_digests_in_any_process() -> None:
    found = set()
    for seed in ("0", "1", "77"):
        result = subprocess.run(
            [sys.executable, "-c", STATES, seed],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        found.add(result.stdout)
    (digests,) = found
    assert len(digests.split()) == 27
    assert len(set(digests.split())) > 18  # of one state, by what the look may go through


def digest(state: object, most: int | None = 4096, turn: int = 1) -> bytes:
    return look(state, most, turn)[0]


def look(state: object, most: int | None = 4096, turn: int = 1) -> tuple[bytes, Look]:
    one = Look(Codec(lambda value: None, lambda number: None), most, turn)
    return one.digest(state), one


def random_value(rng: random.Random, room: int) -> Any:
    """Any plain value, and its equal that was made in another order."""
    kind = rng.randrange(9 if room else 5)
    if kind < 5:
        one = [rng.randrange(10), rng.random(), str(rng.random()), None, bytes([kind])][kind]
        return one, one
    pairs = [random_value(rng, room - 1) for _ in range(rng.randrange(6))]
    if kind == 5:
        return [a for a, _ in pairs], [b for _, b in pairs]
    if kind == 6:
        return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    keys = [rng.randrange(1000) for _ in pairs]
    if kind == 7:
        backward = keys[::-1]
        return set(keys), set(backward)
    forth = dict(zip(keys, pairs, strict=True))
    return (
        {key: a for key, (a, _) in forth.items()},
        {key: b for key, (_, b) in reversed(forth.items())},
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [None, 4096, 60, 5])
def test_how_a_state_was_made_does_not_matter(seed: int, most: int | None) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        one, other = random_value(rng, 4)
        assert digest({"a": one, "b": 1}, most) == digest({"b": 1, "a": other}, most), one


class Sizes:
    """A codec that encodes no more than a look may go through."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def encode_canonical(self, value: object, depth: int) -> bytes:
        encoded = self._codec.encode_canonical(value, depth=depth)
        assert len(encoded) <= 2 * 4096 * BYTES_PER_VALUE
        return encoded


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0.0, -0.0),
        (1, 1.0),
        ("1", b"1"),
        ([1], (1,)),
        ({1}, frozenset({1})),
        (deque([1]), [1]),
        (None, False),
        ({1: 2}, [(1, 2)]),
        (OrderedDict([(1, 1), (2, 2)]), OrderedDict([(2, 2), (1, 1)])),
        ([[], [1]], [[1], []]),
        ({1: {2: {3: [4]}}}, {1: {2: {3: [5]}}}),
    ],
)
def test_other_states_have_other_digests(one: object, other: object) -> None:
    assert digest({"a": one}) != digest({"a": other})
    if not isinstance(one, OrderedDict):
        assert digest({"a": one}, None) != digest({"a": other}, None)


@pytest.mark.parametrize(
    "state",
    [
        list(range(10**6)),
        dict.fromkeys(range(10**6)),
        set(range(10**6)),
        "x" * 10**7,
        bytes(10**7),
        deque(range(10**6)),
        [[1, 2, 3]] * 10**5,
        {number: list(range(1000)) for number in range(1000)},
        Pair(list(range(10**5)), "x" * 10**7),
        [Pair(1, "x" * 10**7)] * 1000,
        {"x" * 10**7},
        {tuple(range(10**5))},
        {frozenset(range(number, number + 100)) for number in range(1000)},
        {tuple(range(number, 10**5)): 1 for number in range(5)},
        {Pair(1, "x" * 10**7): 1},
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_look_has_a_bound(state: object) -> None:
    codec = Codec(lambda value: None, lambda number: None)
    one = Look(codec, 4096, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "_codec", Sizes(codec))
        one.digest({"state": state, "x": 1})
    assert one.values <= 2 * 4096
    assert not one.is_whole


def test_slices_are_others_at_other_turns_and_cover_all() -> None:
    state = {"state": list(range(10_000))}
    other = {"state": list(range(10_000))}
    other["state"][7777] = -1
    found = sum(digest(state, 1000, turn) != digest(other, 1000, turn) for turn in range(300))
    assert 5 < found < 100


def test_cycles_and_parts_that_are_met_often() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert digest({"a": cycle}) == digest({"a": cycle})
    doubled: list[Any] = []
    for _ in range(ROOM - 2):
        doubled = [doubled, doubled]
    found, one = look({"a": doubled})
    assert found
    assert one.values <= 2 * 4096


def test_a_state_that_cannot_travel_has_a_digest_of_its_names() -> None:
    assert digest({"a": object(), "b": 1}) == digest({"b": 2, "a": object()})
    assert digest({"a": object()}) != digest({"b": object()})


class Plain:
    """Attributes as any class has them."""

    def __init__(self, *, backwards: bool = False) -> None:
        names = ["one", "other", "table"]
        for name in reversed(names) if backwards else names:
            setattr(self, name, {"one": 1} if name == "table" else len(name))


class Slotted:
    """Some in slots, some not."""

    __slots__ = ("__dict__", "kept")

    def __init__(self) -> None:
        self.kept = {"kept": 5}
        self.more = 6


class Empty:
    """Nothing but a dict that is empty, in an attribute or as the attributes."""


def digest_of(shared: object, most: int | None = 4096) -> bytes:
    one = Look(Codec(lambda value: None, lambda number: None), most, 1)
    return one.digest_of_values(values_of(shared))


def test_a_look_at_an_object_leaves_its_attributes_as_they_are() -> None:
    """On CPython 3.11 an object that was asked for its dict is slower from then on."""
    shared = Plain()
    assert not has_made_dict(shared)
    before = digest_of(shared)
    assert not has_made_dict(shared)
    assert vars(shared)["one"] == 3
    assert has_made_dict(shared)
    assert digest_of(shared) == before
    assert digest_of(Plain(backwards=True)) == before
    shared.one = 4  # type: ignore[attr-defined]
    assert digest_of(shared) != before


def test_attributes_in_slots_and_objects_with_none() -> None:
    slotted = Slotted()
    before = digest_of(slotted)
    assert sorted(map(str, values_of(slotted))) == ["6", "{'kept': 5}"]
    assert vars(slotted) == {"more": 6}
    assert digest_of(slotted) == before
    slotted.kept["kept"] = 6
    assert digest_of(slotted) != before
    empty = Empty()
    before = digest_of(empty)
    assert vars(empty) == {}
    assert digest_of(empty) == before
    empty.value = {}  # type: ignore[attr-defined]
    assert values_of(empty) == [{}]
    assert digest_of(empty) != before


@pytest.mark.parametrize("count", [10, 1000, 1025, 5000])
def test_an_object_of_many_attributes(count: int) -> None:
    def make(last: object) -> Empty:
        shared = Empty()
        for number in range(count):
            setattr(shared, f"a{number}", [[]] if number % 2 else {})
        shared.last = last  # type: ignore[attr-defined]
        return shared

    assert digest_of(make([1]), 2048) == digest_of(make([1]), 2048)
    one = Look(Codec(lambda value: None, lambda number: None), 2048, 1)
    one.digest_of_values(values_of(make([1])))
    assert one.values <= 2 * 2048
    if count < 100:
        assert digest_of(make([1]), 2048) != digest_of(make([2]), 2048)
