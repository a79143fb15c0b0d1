"""Unanimous bootstrap: no order of starts, kills and restarts makes a second group of a job (I34, ADR-18)."""

from __future__ import annotations

from functools import partial

import pytest

from tests.lib.manual_network import ManualNetwork
from tests.protocol.sim_bootstrap import run

CHUNK = 25
ORDERS = 200
"""Among them are some that find each mutant of the bootstrap that a whole job can show."""


@pytest.mark.parametrize("first", range(0, ORDERS, CHUNK))
def test_no_order_makes_a_second_group(first: int) -> None:
    """The campaign runs more of them (G35)."""
    assert min(run(seed) for seed in range(first, first + CHUNK)) > 0


# Frame by frame.


class Job(ManualNetwork):
    """Processes of one job of three ranks."""

    def add_rank(self, name: str, rank: int) -> None:
        self.add(name, rank, unanimous=3)

    def ask_all(self, name: str, *others: str) -> None:
        """Rank 0 begins a round."""
        stack = self.endpoints[name].stack
        self.call(name, partial(stack.make_or_join, tuple(f"sim:{other}" for other in others)))


@pytest.fixture
def job() -> Job:
    """Three ranks; the others ask rank 0, which is in no view, and then each other."""
    job = Job()
    for rank in range(3):
        job.add_rank(str(rank), rank)
    for one, other in (("1", "0"), ("2", "0"), ("1", "2"), ("2", "1")):
        job.join(one, other)
        job.stabilize()
    return job


def test_all_are_let_in_at_once(job: Job) -> None:
    assert all(job[name].installed is None for name in "012")
    job.ask_all("0", "1", "2")
    job.stabilize()
    assert {job.members(name) for name in "012"} == {"0 1 2"}
    view = job["0"].installed
    assert view is not None
    assert view.number == 2, "the first is of rank 0 alone"


def test_those_that_wait_learn_that(job: Job) -> None:
    assert job["1"].failed[-1] == "sim:2 is in no group yet"


def test_none_is_made_without_all(job: Job) -> None:
    job.cut_off("2")
    job.ask_all("0", "1")
    job.stabilize()
    assert job["0"].installed is None
    assert job["0"].failed == ["rank 2 of 3 did not answer that the group is to be made"]


def test_a_rank_0_that_is_started_again_joins(job: Job) -> None:
    job.ask_all("0", "1", "2")
    job.stabilize()
    job.cut_off("0")
    job.stabilize()
    job.add_rank("new", 0)
    job.ask_all("new", "1", "2")
    job.stabilize()
    assert job.members("new") == "1 2 new"
    assert job.members("1") == "1 2 new"


def test_a_second_rank_0_joins_the_first(job: Job) -> None:
    """It asks before the first has let the others in, and is refused after that: the rank is taken."""
    job.ask_all("0", "1", "2")
    for name in "12":
        job.deliver("0", name, 9)
        job.deliver(name, "0", 9)
    assert job["0"].installed is not None
    job.add_rank("new", 0)
    job.ask_all("new", "0", "1", "2")
    for name in "012":
        job.deliver("new", name, 9)
        job.deliver(name, "new", 9)
    job.stabilize()
    assert job["new"].installed is None
    assert set(job["new"].denied) == {"rank 0 is in the group already"}
    assert job.members("1") == "0 1 2"


def test_frames_that_make_no_sense_there_are_dropped(job: Job) -> None:
    """A NOWHERE that was not asked for makes no group."""
    job.lines()
    job.ask_all("0", "1", "2")
    job.stabilize()
    assert not any("system error" in line for line in job.lines())
