"""A time limit of joining or leaving is one, whatever steps that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

import orcalike as orca
from orcalike.session import deadline, session
from orcalike.session.deadline import Deadline
from orcalike.session.entering import Entering
from orcalike.session.entry import Deserted
from orcalike.session.meeting import MeetingPlace
from orcalike.session.session import Session
from orcalike.session.waiting import Waiting


class Clock:
    """A clock that goes on as each step takes all the time that it is given."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        patch.setattr(deadline, "time", self)

    def monotonic(self) -> float:
        """Seconds."""
        return self.seconds

    def passes(self, seconds: float) -> None:
        """A step has taken so long."""
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def slow(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The session of a group whose steps of leaving take as long as they may."""
    group = orca.connect()
    found, pump = group._session, group._session.pump

    def call_within(seconds: float, *rest: object) -> bool:
        clock.passes(seconds)
        return True

    def wait(condition: object, seconds: float, what: str) -> bool:
        clock.passes(seconds)
        return False

    async def wait_on_loop(condition: object, seconds: float, what: str) -> bool:
        return wait(condition, seconds, what)

    def close_pump(pump: object, stack: object, seconds: float) -> None:
        clock.passes(seconds)

    found.pump = SimpleNamespace(call_within=call_within, failure=None)  # type: ignore[assignment]
    with monkeypatch.context() as patch:
        patch.setattr(found.waiting, "wait", wait)
        patch.setattr(found.waiting, "wait_on_loop", wait_on_loop)
        patch.setattr(found.runner, "stop", clock.passes)
        patch.setattr(found.endpoint, "close_pump", close_pump)
        yield found
    found.pump = pump
    group.close()


def test_leaving_takes_its_limit_once(slow: Session, clock: Clock) -> None:
    slow.leave(5.0)
    assert clock.seconds <= 5.0 + session.CLOSE_WITHIN


async def test_leaving_on_an_event_loop_takes_its_limit_once(slow: Session, clock: Clock) -> None:
    slow.pump.call = lambda function, *args: None  # type: ignore[method-assign]
    await slow.leave_on_loop(5.0)
    assert clock.seconds <= 5.0 + session.CLOSE_WITHIN


def test_joining_takes_its_limit_once(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for the turn at the meeting place has taken some of it, at each of two tries."""
    given: list[float | None] = []
    enter, wait = MeetingPlace.enter, Waiting.wait

    def enter_late(place: MeetingPlace, holder: ExitStack, deadline: Deadline) -> None:
        enter(place, holder, deadline)
        clock.passes(20.0)

    def wait_but_once(
        waiting: Waiting, condition: Callable[[], bool], seconds: float | None, what: str
    ) -> bool:
        if what == "join the group":
            given.append(seconds)
            if len(given) == 1:
                raise Deserted("all members have left")
        return wait(waiting, condition, seconds, what)

    monkeypatch.setattr(MeetingPlace, "enter", enter_late)
    monkeypatch.setattr(Waiting, "wait", wait_but_once)
    with orca.join(at=f"unix:{tmp_path}", timeout=60.0) as group:
        assert group.size == 1
    assert given == [40.0, 20.0]


def test_joining_again_takes_its_limit_once(slow: Session, clock: Clock) -> None:
    """A member that has diverged leaves first."""
    slow.diverged = "it has diverged"
    with pytest.raises(orca.JoinFailed, match="did not let this member go"):
        Entering(slow).rejoin(3.0)
    assert clock.seconds <= 3.0
    slow.diverged = None
