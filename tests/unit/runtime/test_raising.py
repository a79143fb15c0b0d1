"""Exceptions that are raised more than once: each caller has its own, and none of them grows."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any, Self

import pytest

import orcalike as orca
from orcalike.runtime.raising import fresh
from tests.lib.shared_classes import Counter


class Refused(Exception):
    """With an `__init__` of its own, attributes and a slot."""

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with code {code}")
        self.code = code
        self.seen: list[int] = []


@orca.shared
class Refusing:
    """Raises one and the same exception object again and again."""

    def __init__(self) -> None:
        self.error = Refused(3)
        self.error.seen.append(7)
        self.open = False

    @orca.write
    def fail(self) -> None:
        raise self.error

    @orca.write(popup=True)
    def fail_in_a_thread(self) -> None:
        raise self.error

    @orca.write(undo=True)
    def fail_undone(self) -> None:
        raise self.error

    @orca.write
    def wait_and_fail(self) -> None:
        raise self.error

    @wait_and_fail.when
    def _(self) -> bool:
        return self.open

    @orca.write
    def set_open(self) -> None:
        self.open = True

    @orca.read
    def look(self) -> None:
        raise self.error

    @orca.read
    def has_traceback(self) -> bool:
        return self.error.__traceback__ is not None

    def snapshot(self) -> bool:
        return self.open

    @classmethod
    def restore(cls, state: bool) -> Refusing:
        made = cls()
        made.open = state
        return made


@orca.atomic
def fail_together(first: Refusing, second: Refusing) -> None:
    """Raises what the first one keeps."""
    first.fail()


def caught(call: Callable[[], Any]) -> Refused:
    """What the call raises."""
    with pytest.raises(Refused) as info:
        call()
    error = info.value
    assert (error.code, error.seen, str(error)) == (3, [7], "refused with code 3")
    return error


def frames(error: BaseException) -> int:
    """How many frames its traceback has."""
    return len(traceback.extract_tb(error.__traceback__))


@pytest.fixture
def refusing(group: orca.Group) -> Refusing:
    """A shared object that refuses."""
    shared = group.share(Refusing, "refusing")
    shared.set_open()
    return shared


WAYS = ["fail", "fail_in_a_thread", "fail_undone", "wait_and_fail", "look"]


@pytest.mark.parametrize("way", WAYS)
def test_a_kept_exception_does_not_grow(refusing: Refusing, way: str) -> None:
    errors = [caught(getattr(refusing, way)) for _ in range(20)]
    assert len({frames(error) for error in errors}) == 1
    assert len({id(error) for error in errors}) == 20
    assert not refusing.has_traceback()
    assert "refuse" not in repr(errors[0].__context__)
    notes = getattr(errors[-1], "__notes__", [])
    assert notes == ([f"in Refusing.{way} of 'refusing'"] if way != "look" else [])
    assert any(frame.name == way for frame in traceback.extract_tb(errors[-1].__traceback__))


def test_nor_in_an_atomic_function(group: orca.Group, refusing: Refusing) -> None:
    other = group.share(Refusing, "other")
    errors = [caught(lambda: fail_together(refusing, other)) for _ in range(20)]
    assert len({frames(error) for error in errors}) == 1
    assert not refusing.has_traceback()


def test_each_result_is_raised_with_frames_of_its_own(refusing: Refusing) -> None:
    invocation = refusing.fail.nowait()

    def in_another_thread() -> None:
        errors.extend(caught(invocation.result) for _ in range(5))

    errors = [caught(invocation.result) for _ in range(5)]
    thread = threading.Thread(target=in_another_thread)
    thread.start()
    thread.join()
    names = [{f.name for f in traceback.extract_tb(error.__traceback__)} for error in errors]
    assert len({frames(error) for error in errors[:5]}) == 1
    assert not any("in_another_thread" in each for each in names[:5])
    assert not any("test_each_result" in each for each in names[5:])
    assert invocation.exception() is not None
    assert not refusing.has_traceback()


def test_what_the_thread_was_handling_is_not_its_context(refusing: Refusing) -> None:
    try:
        raise KeyError("of this thread")
    except KeyError:
        invocation = refusing.fail.nowait()
    assert caught(invocation.result).__context__ is None


def test_the_end_of_a_group_does_not_grow() -> None:
    with orca.join() as group:
        counter = group.share(Counter, "counter")
    errors: list[BaseException] = []
    for _ in range(5):
        with pytest.raises(orca.GroupClosed) as info:
            counter.add(1)
        errors.append(info.value)
    assert len({frames(error) for error in errors}) == 1
    assert len({id(error) for error in errors}) == 5


class Odd(Exception):
    """Cannot be made from its `args`."""

    def __new__(cls, first: int, second: int) -> Self:
        return super().__new__(cls)

    def __init__(self, first: int, second: int) -> None:
        super().__init__()


BUILTIN = [
    FileNotFoundError(2, "no such file", "name"),
    UnicodeDecodeError("utf8", b"a", 0, 1, "bad"),
    ImportError("m", name="n", path="p"),
    ExceptionGroup("several", [ValueError(1)]),
    SyntaxError("wrong", ("file", 1, 2, "text")),
    StopIteration(3),
    KeyError("k"),
]


@pytest.mark.parametrize("error", BUILTIN, ids=lambda error: type(error).__name__)
def test_builtin_exceptions_are_copied_whole(error: Exception) -> None:
    copy = fresh(error)
    assert copy is not error
    assert type(copy) is type(error)
    assert (str(copy), repr(copy), copy.args) == (str(error), repr(error), error.args)
    for name in ("filename", "errno", "start", "name", "path", "exceptions", "text", "value"):
        assert getattr(copy, name, None) == getattr(error, name, None)


def test_one_that_cannot_be_copied_is_raised_without_what_was_before() -> None:
    error = Odd(1, 2)
    for _ in range(3):
        with pytest.raises(Odd) as info:
            raise fresh(error)
        assert info.value is error
        assert frames(error) == 1
