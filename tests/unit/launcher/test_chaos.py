"""What `orcalike chaos` may ask of a run, and what is refused: nothing is done then."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from orcalike.launch_protocol.control_lines import Cut, Heal, ToProcess
from orcalike.launcher.chaos import SECONDS_MAX, Chaos
from orcalike.launcher.control_socket import Refused
from orcalike.launcher.job import Job, Options
from orcalike.launcher.process_table import ProcessTable
from orcalike.launcher.timers import Timers


class Process:
    """A process that remembers what was done to it."""

    host = "localhost"

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.signals: list[int] = []
        self.sent: list[ToProcess] = []

    def signal_alone(self, number: int) -> None:
        self.signals.append(number)

    def send(self, report: ToProcess) -> None:
        self.sent.append(report)


class Run:
    """Three ranks and a witness, or no witness."""

    def __init__(self, sequencer: Any = "witness") -> None:
        options = Options(program="", nprocs=3, sequencer=sequencer, keep_going=True)
        self.table, self.timers = ProcessTable(Job(options, "", 0)), Timers()
        self.ranks: dict[int, Any] = {rank: Process(100 + rank) for rank in range(3)}
        self.table.ranks.update(self.ranks)
        self.witness: Any
        self.witness = Process(99)
        if sequencer == "witness":
            self.table.witness = self.witness
        self.notices: list[str] = []
        self.chaos = Chaos(self.table, self.timers, self.notices.append)

    def do(self, what: str, **rest: object) -> object:
        return self.chaos.answer({"do": what} | rest)["done"]

    def after(self, seconds: float) -> None:
        """So much later, as far as the timers know."""
        self.timers.expire(time.monotonic() + seconds)

    @property
    def touched(self) -> list[int]:
        """The processes to which anything was done."""
        every = [*self.ranks.values(), self.witness]
        return [each.pid for each in every if each.signals or each.sent]


def test_the_sequencer_is_the_member_that_orders() -> None:
    run = Run()
    run.table.receive(None, "sequencer default")
    run.table.receive(1, "sequencer jobs")
    assert run.do("kill", member="sequencer") == "killed the witness (pid 99)"
    assert (run.witness.signals, run.touched) == ([signal.SIGKILL], [99])


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "no member orders now"),
        ([(0, "shared-order default")], "the order is in shared memory"),
        (
            [(0, "sequencer a"), (1, "sequencer b")],
            "several order, each a group: rank 0 and rank 1",
        ),
    ],
)
def test_no_member_is_taken_for_the_sequencer(lines: list[tuple[int, str]], why: str) -> None:
    run = Run("rank")
    for rank, line in lines:
        run.table.receive(rank, line)
    with pytest.raises(Refused, match=why):
        run.do("kill", member="sequencer")
    assert run.touched == []


def test_one_member_may_order_several_groups() -> None:
    run = Run("rank")
    for group in "ab":
        run.table.receive(2, f"sequencer {group}")
    assert run.do("kill", member="sequencer") == "killed rank 2 (pid 102)"


@pytest.mark.parametrize("member", [3, -1, True, 1.0, "1", None, [], "witness"])
def test_what_is_no_member_of_the_run_is_refused(member: object) -> None:
    run = Run("rank")
    with pytest.raises(Refused, match=r"there is no rank|this run has no witness"):
        run.do("kill", member=member)
    assert run.touched == []


def test_a_rank_that_has_ended_is_refused() -> None:
    run = Run()
    del run.table.ranks[1]
    for what in ("kill", "pause"):
        with pytest.raises(Refused, match="rank 1 does not run"):
            run.do(what, member=1, seconds=1)


def test_what_is_paused_goes_on_when_its_time_is_over() -> None:
    run = Run()
    run.do("pause", member=1, seconds=5)
    run.after(4.0)
    assert run.ranks[1].signals == [signal.SIGSTOP]
    run.after(6.0)
    assert run.ranks[1].signals == [signal.SIGSTOP, signal.SIGCONT]
    assert run.notices[-1] == "orcalike chaos: rank 1 goes on"


def test_a_process_in_the_place_of_one_that_was_paused_is_left_alone() -> None:
    run = Run()
    run.do("pause", member=1, seconds=5)
    again: Any = Process(201)
    run.table.ranks[1] = again
    run.after(6.0)
    assert again.signals == []
    assert not any("goes on" in notice for notice in run.notices)


@pytest.mark.parametrize("seconds", [0, -1, True, "5", None, SECONDS_MAX + 1, float("nan")])
def test_a_time_that_is_none_is_refused(seconds: object) -> None:
    run = Run()
    with pytest.raises(Refused):
        run.do("pause", member=1, seconds=seconds)
    assert run.touched == []


def test_those_that_are_not_named_are_with_the_first_part() -> None:
    run = Run()
    assert run.do("partition", parts=[[0], [2]], seconds=None) == (
        "cut apart until it is healed: rank 0, rank 1 and the witness | rank 2"
    )
    for child in (run.ranks[0], run.ranks[1], run.witness):
        assert child.sent == [Cut(frozenset({2}))]
    assert run.ranks[2].sent == [Cut(frozenset({0, 1, None}))]
    run.after(SECONDS_MAX)
    assert run.ranks[2].sent[1:] == []


def test_a_partition_ends_when_its_time_is_over() -> None:
    run = Run()
    run.do("partition", parts=[[0], [2]], seconds=0.5)
    run.after(0.0)
    assert run.ranks[2].sent == [Cut(frozenset({0, 1, None}))]
    run.after(1.0)
    assert run.ranks[2].sent[1:] == [Heal()]
    assert run.notices[-1] == "orcalike chaos: healed"


@pytest.mark.parametrize("seconds", [None, 50])
def test_a_partition_has_no_end_from_the_one_before(seconds: float | None) -> None:
    run = Run()
    run.do("partition", parts=[[0], [2]], seconds=5)
    run.do("partition", parts=[[0], [1]], seconds=seconds)
    run.after(6.0)
    assert run.ranks[1].sent[-1] == Cut(frozenset({0, 2, None}))


def test_what_was_healed_is_not_healed_again_later() -> None:
    run = Run()
    run.do("partition", parts=[[0], [2]], seconds=5)
    assert run.do("heal") == "healed"
    assert run.do("heal") == "no rank was cut off"
    sent = list(run.ranks[0].sent)
    run.after(6.0)
    assert run.ranks[0].sent == sent


@pytest.mark.parametrize(
    "parts",
    [[], [[0]], [[0], []], [[0], [0]], [[0, 1], [2, 1]], [[0], [3]], [[0], 1], [[0], ["w"]]],
)
def test_parts_that_are_none_are_refused(parts: object) -> None:
    run = Run()
    with pytest.raises(Refused):
        run.do("partition", parts=parts, seconds=None)
    assert run.touched == []


@pytest.mark.parametrize(
    "question", [None, {}, {"do": "stop"}, {"do": "kill"}, {"do": "pause", "member": 1}]
)
def test_what_is_not_understood_is_refused(question: object) -> None:
    run = Run()
    with pytest.raises(Refused, match="not understood"):
        run.chaos.answer(question)
