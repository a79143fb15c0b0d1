"""What the launcher says to the processes of a run when one of them has ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from orcalike.launch_protocol.control_lines import Cut, Died, Ended, Gone, Heal, Make, ToProcess
from orcalike.launch_protocol.deaths import DEATHS_MAX
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
        self.starts(rank)

    def starts(self, rank: int, host: str = Rank.host) -> None:
        """A process of this rank starts on that host."""
        child: Any = Rank()
        self.ranks[rank] = child
        child.host = host
        it: Any = SimpleNamespace(start=lambda start: child)
        places: Any = SimpleNamespace(host=lambda role: it, start=lambda *arguments: None)
        self.table.placement = places
        self.table.start(rank)


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
    for rank in (0, 1, 2):
        run.joins(rank, 10 * rank)
    run.ends(1)
    assert run.ranks[0].makes == run.ranks[2].makes == [], (
        "rank 0 makes it, and needs no word for that"
    )
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


@pytest.mark.parametrize("seen", [True, False])
def test_the_end_of_a_rank_is_certain_on_its_host_if_it_was_seen_there(seen: bool) -> None:
    """For others a host that is lost may go on, and a word of another host may come before what the member has sent (H13)."""
    run = Run(3)
    run.ranks[2].host = "elsewhere"
    for incarnation in (11, 12):
        run.joins(1, incarnation)
    run.ends(1, seen=seen)
    certain = Died if seen else Gone
    assert run.ranks[0].sent == [certain(11), certain(12), Ended(1)]
    assert run.ranks[2].sent == [Gone(11), Gone(12), Ended(1)]


def test_the_end_of_the_witness_is_reported_likewise() -> None:
    run = Run(2, sequencer="witness")
    witness: Any = Rank()
    sent, run.table.witness = witness.sent, witness
    run.table.receive(None, "joining default 9")
    run.joins(0, 1)
    assert run.table.remove(None) is witness
    assert run.ranks[0].sent == run.ranks[1].sent == [Died(9)]
    assert run.table.find(None) is None
    assert sent == []


def test_the_last_ends_are_remembered() -> None:
    run = Run(2)
    for incarnation in range(1, DEATHS_MAX + 3):
        run.table.end_started(incarnation, Rank.host)
    run.starts(1)
    assert run.ranks[1].sent == [Died(each) for each in range(3, DEATHS_MAX + 3)]


def test_a_process_that_starts_late_learns_what_it_has_missed() -> None:
    run = Run(4)
    run.joins(1, 11)
    run.joins(2, 21)
    run.ends(1)
    run.ends(2, seen=False)
    run.table.separate([[0], [3]])
    run.starts(3)
    assert run.ranks[3].sent == [Ended(1), Ended(2), Died(11), Cut(frozenset({0}))]
    run.starts(3, host="elsewhere")
    assert run.ranks[3].sent == [Ended(1), Ended(2), Cut(frozenset({0}))]
    assert run.table.heal()
    run.starts(3)
    assert run.ranks[3].sent == [Ended(1), Ended(2), Died(11)]
    assert not run.table.heal(), "it was healed before"


def test_a_partition_takes_the_place_of_the_one_before() -> None:
    run = Run(4)
    run.table.separate([[0], [1, 2]])
    assert run.ranks[0].sent == [Cut(frozenset({1, 2}))]
    assert run.ranks[1].sent == run.ranks[2].sent == [Cut(frozenset({0}))]
    assert run.ranks[3].sent == [Heal()], "it is in no part"
    run.table.separate([[1], [3]])
    assert run.ranks[0].sent[1:] == run.ranks[2].sent[1:] == [Heal()]
    assert run.ranks[1].sent[1:] == [Cut(frozenset({3}))]


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
