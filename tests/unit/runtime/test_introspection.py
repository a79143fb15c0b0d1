"""What libraries ask of operations and atomic functions: as of the methods and functions that they stand for."""

from __future__ import annotations

import collections.abc
import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any, get_type_hints
from unittest import mock

import pytest

import orcalike as orca
from orcalike.objects import Counter as SharedCounter
from orcalike.objects import List, Queue, RLock
from orcalike.runtime.durations import Duration
from tests.lib.shared_classes import Counter


@orca.atomic
def move(source: Counter, target: Counter, *, by: int = 1) -> int:
    """Move some."""
    source.add(-by)
    return target.add(by)


def test_type_hints(counter: Counter) -> None:
    expected = {"by": int, "return": int}
    for operation in (Counter.add, counter.add):
        assert get_type_hints(operation) == expected
    assert get_type_hints(move) == {
        "source": Counter,
        "target": Counter,
        "by": int,
        "return": int,
    }


def test_type_hints_of_methods_of_several_steps() -> None:
    limit = Duration | None
    expected = {"block": bool, "timeout": limit}
    for method in (Queue.get, Queue[int]().get):
        hints = get_type_hints(method)
        assert {name: hints[name] for name in expected} == expected
    assert get_type_hints(RLock.release) == {"return": type(None)}
    assert "values" in get_type_hints(List[int]().extend)


def test_an_invocation_shows_its_methods(counter: Counter) -> None:
    invocation = counter.add.nowait()
    assert str(inspect.signature(invocation.result)) == "(timeout=None)"
    assert str(inspect.signature(invocation.cancel)) == "()"


def test_each_way_of_calling_has_a_signature(counter: Counter) -> None:
    any_arguments = "(*args, **kwargs)"
    for called in (counter.add, move):
        for way in (called.nowait, called.aio):
            assert str(inspect.signature(way)) == any_arguments
            assert not (way.__doc__ or "").startswith(way.__name__)
        assert list(inspect.signature(called.options).parameters) == ["timeout", "stable"]


def test_operations_are_callable_for_those_that_look() -> None:
    assert isinstance(Counter.add, collections.abc.Callable)  # type: ignore[arg-type]
    counter = Counter()
    assert Counter.add.__call__(counter, by=2) == 2
    with pytest.raises(TypeError, match="needs an object"):
        Counter.add.__call__()  # type: ignore[call-arg]


def test_a_shared_class_can_be_mocked() -> None:
    double = mock.create_autospec(Counter, instance=True)
    double.add.return_value = 7
    assert double.add(1) == 7


def test_operations_of_one_object_are_equal_as_methods_are(counter: Counter) -> None:
    other = Counter()
    assert counter.add == counter.add
    assert len({counter.add, counter.add, counter.get, other.add}) == 3
    assert counter.add != other.add
    assert counter.add != counter.add.options(timeout=1)
    assert counter.add.options(timeout=1) == counter.add.options(timeout="1s")
    not_one: object = "add"
    assert counter.add != not_one
    jobs, more = Queue[int](), Queue[int]()
    assert jobs.get == jobs.get
    assert len({jobs.get, jobs.get, jobs.put, more.get}) == 3
    assert jobs.get != not_one


@orca.shared
class More(Counter):
    """It inherits its operations."""


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_operations_and_atomic_functions_are_copied_by_name(make: Callable[[Any], Any]) -> None:
    for it in (Counter.add, More.add, SharedCounter.add, move):
        assert make(it) is it


def test_an_atomic_function_shows_its_name() -> None:
    assert repr(move) == "<atomic function move>"


def test_a_time_limit_that_passed_is_pickled_whole() -> None:
    error = orca.InvocationTimeout("too late", "withdrawn")
    error.add_note("a note")
    for made in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(made) is orca.InvocationTimeout
        assert (str(made), made.outcome, made.__notes__) == ("too late", "withdrawn", ["a note"])
