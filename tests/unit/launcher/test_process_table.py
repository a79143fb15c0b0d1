"""What the launcher says to the processes of a run when one of them has ended."""

from __future__ import annotations

import pytest

from orcalike.launch_protocol.control_lines import Died, Gone, Make, ToProcess
from orcalike.launcher.job import Job, Options
from orcalike.launcher.process_table import ProcessTable


class Rank:
    """A process of a run that remembers what was sent to it."""

    host = "localhost"

    def __init__(self) -> None:
        self.sent: list[ToProcess] = []

    def send(self, report: ToProcess) -> None:
        self.sent.append(report)

    @property
    def makes(self) -> list[tuple[str, int]]:
        return [(it.group, it.incarnation) for it in self.sent if isinstance(it, Make)]


class Run:
    """A table of so many ranks, none of which has a line to a process."""

    def __init__(self, ranks: int, sequencer: str = "rank") -> None:
        options = Options(program="", nprocs=ranks, sequencer=sequencer)  # type: ignore[arg-type]
        self.table = ProcessTable(Job(options, "", 0))
        self.ranks = [Rank() for _ in range(ranks)]
        self.table.ranks.update(enumerate(self.ranks))  # type: ignore[arg-type]

    def joins(self, rank: int, incarnation: int, group: str = "default") -> None:
        self.table.receive(rank, f"joining {group} {incarnation}")

    def ends(self, rank: int, *, seen: bool = True) -> None:
        self.table.remove(rank, seen=seen)
        self.table.give_up(rank, seen=seen)

    def restarts(self, rank: int) -> None:
        """It ends, and another process has its place."""
        self.table.remove(rank)
        self.ranks[rank] = Rank()
        self.table.ranks[rank] = self.ranks[rank]  # type: ignore[assignment]


def test_the_next_rank_makes_what_rank_0_has_not() -> None:
    run = Run(3)
    run.joins(1, 11)
    run.joins(2, 21)
    run.ends(0)
    assert run.ranks[1].makes == [("default", 11)]
    assert run.ranks[2].makes == []
    run.joins(1, 12, "other")
    assert ("other", 12) in run.ranks[1].makes
    run.joins(2, 22, "third")
    assert "third" not in dict(run.ranks[1].makes), "rank 1 has not asked for it"


def test_one_after_the_other() -> None:
    run = Run(3)
    for rank in (1, 2):
        run.joins(rank, 10 * rank)
    run.ends(1)
    assert run.ranks[2].makes == [], "rank 0 makes it"
    run.ends(0)
    assert run.ranks[2].makes == [("default", 20)]


def test_not_what_was_made() -> None:
    run = Run(3)
    for rank in (0, 1, 2):
        run.joins(rank, 10 * rank)
    run.table.receive(0, "shared-order default")
    run.ends(0)
    assert run.ranks[1].makes == run.ranks[2].makes == []


def test_not_while_rank_0_is_started_again() -> None:
    run = Run(2)
    run.joins(1, 10)
    run.restarts(0)
    assert run.ranks[1].makes == []


def test_one_that_was_started_again_makes_it_as_the_member_that_it_is_now() -> None:
    run = Run(2)
    run.joins(1, 10)
    run.ends(0)
    run.restarts(1)
    assert run.ranks[1].makes == [], "it has not asked for it yet"
    run.joins(1, 11)
    assert run.ranks[1].makes == [("default", 11)]


@pytest.mark.parametrize("lost", [0, 1])
def test_not_if_a_rank_before_it_may_live(lost: int) -> None:
    """A host that is lost may go on with the ranks that it has."""
    run = Run(3)
    run.joins(2, 20)
    for rank in (0, 1):
        run.ends(rank, seen=rank != lost)
    assert run.ranks[2].makes == []


def test_a_witness_makes_all_groups() -> None:
    run = Run(2, sequencer="witness")
    run.joins(1, 10)
    run.ends(0)
    assert run.ranks[1].makes == []


def test_an_end_is_said_to_all() -> None:
    run = Run(3)
    run.ends(1)
    assert [str(it) for it in run.ranks[0].sent] == [str(it) for it in run.ranks[2].sent] != []


def test_the_end_of_what_a_rank_has_started_is_certain_on_its_host() -> None:
    run = Run(3)
    run.ranks[2].host = "elsewhere"
    run.table.end_started(7, "localhost")
    assert run.ranks[0].sent == run.ranks[1].sent == [Died(7)]
    assert run.ranks[2].sent == [Gone(7)]
    assert 7 in run.table.groups.died


def test_nothing_that_a_rank_has_started_is_believed_to_be_the_rank() -> None:
    run = Run(2)
    run.joins(1, 10)
    run.table.end_started(10, "localhost")
    assert run.ranks[0].sent == run.ranks[1].sent == []
    assert 10 not in run.table.groups.died
