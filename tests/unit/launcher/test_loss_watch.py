"""When a group that looks blocked for good is taken for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orcalike.launch_protocol.control_lines import Role
from orcalike.launch_protocol.descriptions import Description
from orcalike.launcher import loss_watch
from orcalike.launcher.group_status import Loss
from orcalike.launcher.loss_watch import QUESTIONS, LossWatch
from orcalike.launcher.status import Answers
from orcalike.launcher.timers import Timers

DESCRIPTION = Description(1, 2, False, False, 0, 0, 0, 0, 0)
LOSS = Loss("default", frozenset({2}), "no majority", waiting=frozenset({0, 1}))


class Run:
    """A run that looks lost, and what came of it."""

    def __init__(self) -> None:
        self.loss: Loss | None = LOSS
        self.lost: list[Loss] = []
        self.timers = Timers()
        self._reply: Callable[[Answers], None] | None = None
        status: Any = self
        self.watch = LossWatch(status, self.timers, lambda: self.loss, self.lost.append)

    def collect(self, reply: Callable[[Answers], None]) -> None:
        """Take a question."""
        self._reply = reply

    def asks(self) -> bool:
        """Whether there is one, when the next timer is due."""
        self.timers.expire(float("inf"))
        return self._reply is not None

    def answer(self, *roles: Role) -> None:
        """These have answered in time."""
        assert self.asks()
        assert self._reply is not None
        reply, self._reply = self._reply, None
        reply({(role, "default"): DESCRIPTION for role in roles})


@pytest.fixture
def run() -> Run:
    run = Run()
    run.watch.look()
    return run


def test_it_is_if_all_that_wait_have_answered_in_a_row(run: Run) -> None:
    for _ in range(QUESTIONS):
        assert run.lost == []
        run.answer(0, 1, 3)
    assert run.lost == [LOSS]
    assert not run.asks()


def test_it_is_not_while_one_does_not_answer(run: Run) -> None:
    for _ in range(5 * QUESTIONS):
        run.answer(0)
    assert run.lost == []


def test_one_that_answers_again_has_time_to_go_on(run: Run) -> None:
    for _ in range(QUESTIONS - 1):
        run.answer(0, 1)
    run.answer(0)  # the other one was stopped
    for _ in range(QUESTIONS - 1):
        run.answer(0, 1)
    assert run.lost == []
    run.loss = None  # it goes on
    run.watch.look()
    run.answer(0, 1)
    assert run.lost == []
    assert not run.asks()


def test_a_loss_that_comes_again_is_asked_for_anew(run: Run) -> None:
    for _ in range(QUESTIONS - 1):
        run.answer(0, 1)
    run.loss = None
    run.watch.look()
    run.loss = LOSS
    run.watch.look()
    for _ in range(QUESTIONS):
        assert run.lost == []
        run.answer(0, 1)
    assert run.lost == [LOSS]


def test_what_is_open_is_not_asked_twice(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    at = run.timers.at

    def count(name: str, seconds: float, callback: Callable[[], None]) -> None:
        asked.append(seconds)
        at(name, seconds, callback)

    monkeypatch.setattr(run.timers, "at", count)
    for _ in range(3):
        run.watch.look()
    run.answer(0, 1)
    assert asked == [loss_watch.EACH_SECONDS]
