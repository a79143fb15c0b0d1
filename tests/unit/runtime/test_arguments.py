"""Arguments in their places: equal to what Python itself would bind, errors included."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import orcalike as orca
from orcalike.declare.decorators import atomic, read, shared, write
from orcalike.runtime.arguments import Arity, arity, constructor_arguments, positional
from orcalike.runtime.classes import lookup_class
from tests.lib.processes import DEADLINE


class Forms:
    """Operations with parameters of each kind; each returns what it was given."""

    @write
    def none(self) -> object:
        return ()

    @write
    def plain(self, a: int, b: int = 2, c: int = 3) -> object:
        return a, b, c

    @write
    def before(self, a: int, /, b: int = 2) -> object:
        return a, b

    @write
    def rest(self, a: int = 1, *b: int, c: int = 3) -> object:
        return a, b, c

    @write
    def named(self, *, a: int, b: int = 2) -> object:
        return a, b

    @write
    def any(self, a: int, b: int = 2, /, *c: int, d: int, **e: int) -> object:
        return a, b, c, d, e

    @write
    def guarded(self, a: int, b: int = 2, c: int = 3) -> object:
        return a, b, c

    @guarded.when
    def _(self, a: int, b: int = 2, c: int = 3) -> bool:
        return (a, b, c) is not None

    @read
    def looked(self, a: int, b: int = 2, /, c: int = 3) -> object:
        return a, b, c

    @looked.when
    def _(self, a: int, b: int = 2, /, c: int = 3) -> bool:
        return (a, b, c) is not None


@shared
class SharedForms(Forms):
    """The same operations of a shared object."""


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or the words of its TypeError."""
    try:
        return call()
    except TypeError as error:
        return str(error)


NAMES = ["none", "plain", "before", "rest", "named", "any"]
calls = given(
    args=st.lists(st.integers(), max_size=4),
    kwargs=st.dictionaries(st.sampled_from("abcdz"), st.integers(), max_size=4),
)


@pytest.mark.parametrize("name", NAMES)
@calls
def test_a_moved_call_is_the_same_call(name: str, args: list[int], kwargs: dict[str, int]) -> None:
    operation = vars(Forms)[name]
    function, forms = operation.function, Forms()

    def moved() -> object:
        placed, named = positional(operation, tuple(args), kwargs)
        assert set(named) <= set(kwargs)
        return function(forms, *placed, **named)

    expected = outcome(lambda: function(forms, *args, **kwargs))
    assert outcome(moved) == expected
    if isinstance(expected, str):  # before anything is sent
        with pytest.raises(TypeError):
            positional(operation, tuple(args), kwargs)


@pytest.fixture(scope="module")
def forms() -> Iterator[SharedForms]:
    with orca.join() as group:
        yield group.share(SharedForms, "forms")


@pytest.mark.parametrize("name", [*NAMES, "guarded", "looked"])
@pytest.mark.parametrize("waits", [True, False])
@calls
def test_a_call_of_a_shared_object_is_the_same_call(
    forms: SharedForms, waits: bool, name: str, args: list[int], kwargs: dict[str, int]
) -> None:
    operation = getattr(forms, name)

    def called() -> object:
        return operation(*args, **kwargs) if waits else operation.nowait(*args, **kwargs).result()

    assert outcome(called) == outcome(lambda: getattr(Forms(), name)(*args, **kwargs))


@pytest.mark.parametrize("count", [8, 9, 300])
@pytest.mark.parametrize("kwargs", [{}, {"c": 5}])
def test_a_call_of_many_arguments(forms: SharedForms, count: int, kwargs: dict[str, int]) -> None:
    bound, expected = forms.rest, Forms().rest(*range(count), **kwargs)
    assert bound(*range(count), **kwargs) == forms.rest(*range(count), **kwargs) == expected
    assert bound.__call__(*range(count), **kwargs) == expected
    assert bound.options(timeout=DEADLINE)(*range(count), **kwargs) == expected
    assert bound.nowait(*range(count), **kwargs).result() == expected


@pytest.mark.parametrize("name", ["plain", "guarded"])
def test_names_may_come_in_any_order(forms: SharedForms, name: str) -> None:
    operation = getattr(forms, name)
    for names in [*itertools.permutations("abc")] * 2:  # they are known the second time
        assert operation(**{each: ord(each) for each in names}) == tuple(b"abc")
        assert operation(0, **{each: ord(each) for each in names if each != "a"}) == (0, *b"bc")
        assert operation.nowait(**{each: ord(each) for each in names}).result() == tuple(b"abc")
    assert forms.looked(1, 2, c=3) == (1, 2, 3)


def test_defaults_fill_gaps_only() -> None:
    plain = vars(Forms)["plain"]

    assert positional(plain, (1,), {}) == ((1,), {})
    assert positional(plain, (), {"a": 1, "c": 5}) == ((1, 2, 5), {})
    assert positional(plain, (1,), {"b": 7}) == ((1, 7), {})
    assert positional(vars(Forms)["named"], (), {"a": 1}) == ((), {"a": 1})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", Arity(0, 0, False)),
        ("plain", Arity(1, 3, False)),
        ("before", Arity(1, 2, False)),
        ("rest", Arity(0, -1, False)),
        ("named", Arity(0, 0, True)),
        ("any", Arity(1, -1, True)),
    ],
)
def test_arity(name: str, expected: Arity) -> None:
    function: FunctionType = vars(Forms)[name].function

    assert arity(function) == expected
    if expected.accepts >= 0 and not expected.keyword_only_required:
        for count in range(5):
            fits = expected.required <= count <= expected.accepts
            bind = functools.partial(inspect.signature(function).bind, None, *range(count))
            bound = outcome(bind)
            assert fits == isinstance(bound, inspect.BoundArguments)


def test_atomic_functions_have_no_self() -> None:
    @atomic
    def move(source: Any, target: Any, count: int = 1) -> None: ...

    assert arity(move.function, method=False) == Arity(2, 3, False)
    assert positional(move, (1,), {"target": 2}) == ((1, 2), {})
    with pytest.raises(TypeError, match=r"move\(\) missing 1 required positional argument: 'targ"):
        positional(move, (1,), {})


def test_constructor_arguments() -> None:
    @shared
    class Jobs:
        def __init__(self, limit: int, name: str = "") -> None:
            self.limit = limit

    @shared
    class Bare:
        pass

    jobs, bare = lookup_class(Jobs), lookup_class(Bare)
    assert jobs is not None
    assert bare is not None
    assert constructor_arguments(jobs, (), {"name": "a", "limit": 1}) == ((1, "a"), {})
    assert constructor_arguments(bare, (), {}) == ((), {})
    with pytest.raises(TypeError, match=r"Jobs\.__init__\(\) missing 1 required .* 'limit'"):
        constructor_arguments(jobs, (), {})
    with pytest.raises(TypeError, match=r"Bare\(\) takes no arguments"):
        constructor_arguments(bare, (1,), {})
