"""`check="shadow"`: most of what is not deterministic is found in one process, by running it twice."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator

import pytest

import orcalike as orca
from orcalike.launch_protocol.environment import find_checks

counter = itertools.count()


@orca.shared
class Planted:
    """Operations that are not deterministic, each in its own way, and some that are."""

    def __init__(self, by_clock: bool = False) -> None:
        self.value: object = None
        self.names = {"b", "a", "c", "e", "f", "g", "h"}
        self.numbers = {8, 1, 32, 5}
        self.listed: list[object] = []
        self.made = time.time() if by_clock else 0.0  # orca: unchecked

    @orca.read
    def get(self) -> object:
        return self.value

    @orca.write
    def clock(self) -> None:
        self.value = time.perf_counter_ns()  # orca: unchecked

    @orca.write
    def rng(self) -> None:
        self.value = random.random()  # orca: unchecked

    @orca.write
    def result_alone(self) -> float:
        return random.random()  # orca: unchecked

    @orca.write
    def order_of_a_set(self) -> None:
        self.value = list(self.numbers)  # orca: unchecked

    @orca.write
    def order_of_names(self) -> None:
        for name in self.names:  # orca: unchecked
            self.listed.append(name)

    @orca.write
    def global_counter(self) -> int:
        self.value = next(counter)  # orca: unchecked
        return 0

    @orca.write
    def identity(self) -> None:
        self.value = id(self)  # orca: unchecked

    @orca.write
    def now_and_then_raises(self) -> None:
        if next(counter) % 2:  # orca: unchecked
            raise ValueError("now")

    @orca.write(popup=True)
    def slowly(self) -> None:
        self.value = random.random()  # orca: unchecked

    @orca.write
    def when(self) -> None:
        self.value = random.random()  # orca: unchecked

    @when.when
    def _(self) -> bool:
        return True

    @orca.write
    def process(self) -> None:
        self.value = os.getpid()  # orca: unchecked

    @orca.write
    def honest(self, by: list[int]) -> tuple[float, float]:
        by.append(len(self.listed))
        self.listed.append(by)
        self.value = orca.random().random()
        return orca.now(), orca.random().random()

    @orca.write
    def raises(self) -> None:
        self.listed.append(1)
        raise KeyError("always")

    @orca.write
    def result_that_cannot_travel(self) -> Iterator[object]:
        return iter(self.listed)


@orca.atomic
def both(one: Planted, other: Planted) -> None:
    """Two objects in one call; the second differs."""
    one.value = 1
    other.value = random.random()  # orca: unchecked


@orca.atomic
def both_alike(one: Planted, other: Planted, amount: int) -> int:
    """Deterministic."""
    one.value, other.value = amount, -amount
    return amount


@pytest.fixture
def planted() -> Iterator[Planted]:
    with orca.join(check="shadow") as group:
        yield group.share(Planted, "planted")


@pytest.mark.parametrize(
    ("operation", "where"),
    [
        ("clock", "the attribute 'value'"),
        ("rng", "the attribute 'value'"),
        ("result_alone", "its result"),
        ("order_of_a_set", "the attribute 'value'"),
        ("order_of_names", "the attribute 'listed'"),
        ("global_counter", "the attribute 'value'"),
        ("identity", "the attribute 'value'"),
        ("now_and_then_raises", "its result"),
        ("slowly", "the attribute 'value'"),
        ("when", "the attribute 'value'"),
    ],
)
def test_it_names_object_operation_and_attribute(
    planted: Planted, operation: str, where: str
) -> None:
    with pytest.raises(orca.ReplicaDivergence) as caught:
        getattr(planted, operation)()
    text = str(caught.value)
    assert text.startswith(f"Planted.{operation} of 'planted' is not deterministic: run twice")
    assert where in text
    with pytest.raises(orca.ReplicaDivergence):
        planted.get()  # it serves no more


def test_what_is_deterministic_runs_as_ever(planted: Planted) -> None:
    for number in range(3):
        now, _ = planted.honest([1, 2])
        assert now > 0
        assert planted.listed[number] == [1, 2, number]
    with pytest.raises(KeyError, match="always"):
        planted.raises()
    assert len(planted.listed) == 4
    assert list(planted.result_that_cannot_travel()) == planted.listed
    planted.process()  # alike in one process: digests find it
    assert planted.get() == os.getpid()


def test_random_numbers_are_those_of_a_run_without_it(planted: Planted) -> None:
    with orca.join() as group:
        plain = group.share(Planted, "planted")
        plain.honest([])
        assert isinstance(plain.get(), float)
    planted.honest([])
    planted.honest([])
    assert planted.listed == [[0], [1]]


def test_constructors_hooks_and_atomic_functions() -> None:
    with orca.join(check="shadow,strict") as group:
        one, other = group.share(Planted, "one"), group.share(Planted, "other")
        assert both_alike(one, other, 3) == 3
        assert (one.get(), other.get()) == (3, -3)
        with pytest.raises(
            orca.ReplicaDivergence, match=r"both of 'one' and 'other' .* of 'other'"
        ):
            both(one, other)
    with (
        orca.join(check="shadow") as group,
        pytest.raises(orca.ReplicaDivergence, match=r"Planted.__init__ of 'p' .*'made'"),
    ):
        group.share(Planted, "p", by_clock=True)


def test_words_of_both_places_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCALIKE_CHECK", "hash")
    assert find_checks("shadow, strict") == {"hash", "shadow", "strict"}
    with pytest.raises(ValueError, match=r"check=all: there is hash, none, order, shadow, strict"):
        orca.join(check="all").__enter__()
