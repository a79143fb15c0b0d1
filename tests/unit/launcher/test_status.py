"""Which processes are asked how their groups stand, and for which answers a question waits."""

from __future__ import annotations

from typing import Any

import pytest

from orcalike.launch_protocol.control_lines import Describe, ToProcess
from orcalike.launch_protocol.descriptions import Description, encode
from orcalike.launcher import status
from orcalike.launcher.child import Exit, Usage
from orcalike.launcher.job import Job, Options
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.status import Status
from orcalike.launcher.timers import Timers


class Rank:
    """A process of a run that remembers what it was asked."""

    host, pid, restarts, usage = "localhost", 1, 0, Usage()

    def __init__(self) -> None:
        self.asked: list[int] = []

    def send(self, report: ToProcess) -> None:
        assert isinstance(report, Describe)
        self.asked.append(report.number)


class Run:
    """Two ranks, of which the first has joined, and what questions were answered with."""

    def __init__(self) -> None:
        self.table = ProcessTable(Job(Options(program="", nprocs=2), "", 0))
        self.ranks = [Rank(), Rank()]
        self.table.ranks.update(enumerate(self.ranks))  # type: ignore[arg-type]
        self.timers = Timers()
        self.status = Status(self.table, self.timers)
        self.answers: list[dict[str, Any]] = []
        self.table.groups.receive(0, "joining default 11")

    def ask(self) -> None:
        self.status.ask(self.answers.append)

    def time_is_over(self) -> None:
        self.timers.expire(float("inf"))

    def says(self, rank: int, number: int) -> None:
        text = encode(Description(1, 2, True, False, 0, 0, 0, 0, 0))
        self.table.groups.receive(rank, f"described {number} default {text}")

    def has_answered(self) -> list[bool]:
        """Of each answer, whether it has what rank 0 says of its group."""
        members = [answer["groups"][0]["members"] for answer in self.answers]
        return [each[0]["answers"] for each in members]


def test_processes_that_are_in_no_group_are_not_asked() -> None:
    run = Run()
    run.ask()
    assert [rank.asked for rank in run.ranks] == [[1], []]
    run.says(0, 1)
    assert run.has_answered() == [True]


def test_processes_that_have_ended_come_behind_those_that_run() -> None:
    """The ranks by their numbers, and the witness last: it has none."""
    run = Run()
    for role, code in ((None, -9), (1, 3)):
        child: Any = Rank()
        run.table.exits[role] = child, Exit(code)
    del run.table.ranks[1]
    run.table.ended.append(1)
    run.ask()
    run.says(0, 1)
    (answer,) = run.answers
    processes = [(each["role"], each["state"], each["exit_code"]) for each in answer["processes"]]
    assert processes == [(0, "running", None), (1, "left", 3), ("witness", "left", 137)]


def test_process_that_does_not_answer_is_asked_once() -> None:
    run = Run()
    run.ask()
    assert run.answers == []
    run.time_is_over()
    for _ in range(1000):
        run.ask()  # answered at once: there is no process to wait for
    assert run.ranks[0].asked == [1]
    assert run.has_answered() == [False] * 1001
    run.says(0, 1)
    run.ask()
    assert run.ranks[0].asked == [1, 1002]
    run.says(0, 1002)
    assert run.has_answered()[-1]


def test_process_is_asked_of_no_group_that_it_has_left() -> None:
    run = Run()
    run.table.groups.receive(0, "joining other 12")
    run.table.groups.receive(0, "sequencer other")
    run.table.groups.receive(0, "left other")
    run.ask()
    run.says(0, 1)
    (answer,) = run.answers
    assert [group["name"] for group in answer["groups"]] == ["default"]
    assert run.table.groups.sequencers() == []


def test_process_that_answers_for_one_of_its_groups_is_asked_again() -> None:
    """It reads its line; the loop of the other group may be blocked."""
    run = Run()
    run.table.groups.receive(0, "joining other 12")
    run.ask()
    run.says(0, 1)
    run.time_is_over()
    run.ask()
    run.says(0, 2)
    run.time_is_over()
    assert run.has_answered() == [True, True]


def test_questions_at_the_same_time_are_all_asked() -> None:
    run = Run()
    run.ask()
    run.ask()
    assert run.ranks[0].asked == [1, 2]
    run.says(0, 1)
    run.says(0, 2)
    assert run.has_answered() == [True, True]


def test_process_that_is_started_again_is_asked() -> None:
    run = Run()
    run.ask()
    run.time_is_over()
    run.ranks[0] = Rank()
    run.table.ranks[0] = run.ranks[0]  # type: ignore[assignment]
    run.ask()
    assert run.ranks[0].asked == [2]


def test_answer_that_was_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    run.ask()
    run.time_is_over()
    monkeypatch.setattr(status, "ASK_AGAIN_SECONDS", 0.0)
    run.ask()
    assert run.ranks[0].asked == [1, 2]
