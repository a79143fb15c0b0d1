"""Ranks that no launcher of ours has started: they make one group, and one that is started again joins it (ADR-18)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orcalike.launch_protocol.environment import RankEnvironment

SIZE = 3
WORKER = """
import logging
import sys
import orcalike as orca
from orcalike.session import waiting
from tests.lib.shared_classes import Counter

logging.basicConfig(format="%(message)s", stream=sys.stderr)
waiting.SAY_EVERY = float(sys.argv[1])
with orca.join(timeout="90s") as group:
    counter = group.share(Counter, "counter")
    print(group.rank, group.me.incarnation, flush=True)
    for line in sys.stdin:
        print(counter.add(int(line)) if int(line) else group.size, flush=True)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a rank, as an engine would; `listen` is its address if that is not the rank's own."""
    started: list[subprocess.Popen[str]] = []
    seeds = tuple(f"unix:{tmp_path}/{name}" for name in (*map(str, range(SIZE)), "other"))

    def make(
        rank: int, *, listen: str = "", size: int = SIZE, say_every: float = 10
    ) -> subprocess.Popen[str]:
        environment = RankEnvironment(
            rank=rank,
            size=size,
            address=seeds[0],
            sequencer="rank",
            directory=str(tmp_path),
            seeds=seeds,
            listen=listen or seeds[rank],
            unanimous=True,
            job="job 7",
        )
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(say_every)],
            env=os.environ | environment.to_environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield make
    for process in started:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> list[int]:
    """The next line that it prints, as numbers."""
    assert process.stdout
    return [int(word) for word in process.stdout.readline().split()]


def ask(process: subprocess.Popen[str], number: int) -> int:
    """Add to the counter; with 0, the size of the group."""
    assert process.stdin
    process.stdin.write(f"{number}\n")
    process.stdin.flush()
    return line_of(process)[0]


def until_three(process: subprocess.Popen[str]) -> None:
    """Wait until all are in the group, as one of them sees it."""
    while ask(process, 0) != SIZE:
        pass


def test_ranks_make_one_group_and_rank_0_is_started_again(start: Start) -> None:
    """Whichever is first, and whichever ends."""
    one, two, zero = start(1), start(2), start(0)
    assert sorted(line_of(each)[0] for each in (zero, one, two)) == [0, 1, 2]
    assert [ask(each, 5) for each in (zero, one, two)] == [5, 10, 15]
    zero.kill()
    zero.wait()
    again = start(0)
    assert line_of(again)[0] == 0
    until_three(one)
    assert ask(again, 1) == 16, "it is in the group that there was"
    two.kill()
    two.wait()
    again = start(2)
    assert line_of(again)[0] == 2
    assert ask(again, 1) == 17


def test_two_of_rank_0_make_one_group(start: Start, tmp_path: Path) -> None:
    """The other learns that its rank is taken."""
    zeros = [start(0), start(0, listen=f"unix:{tmp_path}/other")]
    others = [start(1), start(2)]
    assert sorted(line_of(each)[0] for each in others) == [1, 2]
    assert [ask(each, 0) for each in others] == [SIZE, SIZE]
    refused = [zero for zero in zeros if not line_of(zero)]
    assert len(refused) == 1
    assert "rank 0 is in the group already" in refused[0].communicate()[1]


def test_a_rank_that_is_missing_is_named(start: Start) -> None:
    zero, _one = start(0, say_every=0.5), start(1)
    assert zero.stderr
    said = zero.stderr.readline()
    while "did not answer" not in said:
        assert said
        said = zero.stderr.readline()
    assert "join the group waits: the group was not made or found yet" in said
    assert "rank 2 of 3 did not answer" in said or "ranks 1 and 2 of 3 did not answer" in said


def test_a_rank_of_a_job_of_another_size_is_named(start: Start) -> None:
    zero, _one, _two = start(0, say_every=0.5), start(1), start(2, size=8)
    assert zero.stderr
    said = zero.stderr.readline()
    while "is of a job of" not in said:
        assert said
        said = zero.stderr.readline()
    assert "/2 is of a job of 8 processes, not of 3" in said
