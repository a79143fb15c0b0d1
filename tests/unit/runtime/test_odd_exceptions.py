"""Exceptions and values of the program that cannot be shown: they end no member."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

import orcalike as orca
from orcalike.runtime.history import describe
from orcalike.session.log import Fallback
from orcalike.transport.wording import repr_of, text_of

LIMIT = 30


class OddError(Exception):
    """One that has a slip in how it is shown."""

    __slots__ = ("code",)
    __notes__: list[str] = "none"  # type: ignore[assignment]

    def __init__(self, code: int) -> None:
        self.code = code

    def __repr__(self) -> str:
        return "Odd " + self.code  # type: ignore[operator,no-any-return]

    __str__ = __repr__


@orca.shared
class Odd:
    """Raises it wherever a class can."""

    def __init__(self) -> None:
        self.count = 0
        self.values: dict[int, object] = {}
        self.in_snapshot = False
        self.items: list[int] = []

    @orca.write
    def fail(self) -> None:
        raise OddError(3)

    @orca.write(popup=True)
    def fail_in_a_thread(self) -> None:
        raise OddError(3)

    @orca.write
    def keep_what_cannot_travel(self) -> None:
        self.values = {10**5000: object()}

    @orca.write
    def clear(self) -> None:
        self.values = {}

    @orca.write
    def first(self) -> int:
        return next(iter(self.items))

    @orca.write
    def add(self) -> int:
        self.count += 1
        return self.count

    def member_left(self, member: orca.Member) -> None:
        raise OddError(4)


@orca.shared
class Hidden:
    """Its state cannot be given."""

    @orca.read
    def value(self) -> int:
        return 5

    def snapshot(self) -> int:
        raise OddError(5)

    @classmethod
    def restore(cls, state: int) -> Hidden:
        raise OddError(state)


@orca.shared
class Watched:
    """Its invariant cannot be looked at."""

    def __init__(self) -> None:
        self.count = 0

    @orca.write
    def add(self) -> None:
        self.count += 1

    @orca.invariant
    def holds(self) -> bool:
        if self.count:
            raise OddError(6)
        return True


@pytest.fixture
def odd(group: orca.Group) -> Iterator[Odd]:
    """An object that serves at the end, too."""
    shared = group.share(Odd, "odd")
    yield shared
    assert shared.add() == 1


def test_a_failure_that_is_not_asked_for(odd: Odd, caplog: pytest.LogCaptureFixture) -> None:
    for fail in (odd.fail, odd.fail_in_a_thread):
        fail.nowait()
    del fail
    assert odd.first.nowait().exception() is not None
    pattern = (
        "failed, and its outcome was not asked for: <OddError, of which repr() raises TypeError>"
    )
    assert [record.getMessage() for record in caplog.records] == [
        f"Odd.fail {pattern}",
        f"Odd.fail_in_a_thread {pattern}",
    ]


def test_a_failure_that_is_asked_for(odd: Odd) -> None:
    """It is the program's own, as it is."""
    with pytest.raises(OddError) as caught:
        odd.fail()
    assert caught.value.code == 3


def test_a_state_that_cannot_travel(odd: Odd) -> None:
    with pytest.raises(orca.NotSerializable, match=r"<int, of which repr\(\) raises ValueError>"):
        odd.keep_what_cannot_travel()
    odd.clear()


def test_a_hook(odd: Odd, group: orca.Group, caplog: pytest.LogCaptureFixture) -> None:
    group._runtime.sender.driver.call(lambda now: group._runtime.manager.left_already(group.me))
    assert "member_left of 'odd' raised <OddError, of which repr() raises TypeError>" in caplog.text


def test_a_snapshot(odd: Odd, group: orca.Group) -> None:
    with pytest.raises(orca.NotSerializable, match="its snapshot raised <OddError"):
        group.share(Hidden, "hidden")


def test_an_invariant(odd: Odd, group: orca.Group) -> None:
    watched = group.share(Watched, "watched")
    with pytest.raises(orca.InvariantBroken, match="it raised <OddError"):
        watched.add()


def test_the_end_of_an_iterator_ends_a_task(odd: Odd) -> None:
    """It would pass for the result of the coroutine, and the task would never end (PEP 479)."""

    async def in_task() -> BaseException | None:
        task = asyncio.create_task(odd.first.aio())
        await asyncio.wait([task], timeout=LIMIT)
        assert task.done()
        return task.exception()

    with pytest.raises(StopIteration):
        odd.first()
    error = asyncio.run(in_task())
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, StopIteration)


def test_how_they_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    error = OddError(3)
    assert repr_of(error) == "<OddError, of which repr() raises TypeError>"
    assert text_of(error) == "<str() raises TypeError>"
    assert describe(error) == "OddError: <str() raises TypeError>"
    assert (repr_of("a"), text_of(ValueError("a"))) == ("'a'", "a")


def test_a_warning_that_cannot_be_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is reported as that of any other handler is, and ends nothing."""
    monkeypatch.setattr(logging.getLogger("orcalike"), "propagate", False)
    monkeypatch.setattr(logging.getLogger("orcalike"), "handlers", [])
    record = logging.makeLogRecord({"name": "orcalike", "msg": "%r", "args": (OddError(3),)})
    Fallback().emit(record)
    assert "Logging error" in capsys.readouterr().err
