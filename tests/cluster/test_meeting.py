"""`join(at=...)`: workers that are all alike make one group, whichever comes first and whichever ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import orcalike as orca
from orcalike.session.deadline import Deadline
from orcalike.session.meeting import MeetingPlace

DEADLINE = 100.0
WORKER = """
import sys
import orcalike as orca
from tests.lib.shared_classes import Counter

with orca.join(at=sys.argv[1], timeout="90s", resilience=int(sys.argv[2])) as group:
    counter = group.share(Counter, "counter")
    print(group.rank, group.me.incarnation, flush=True)
    for line in sys.stdin:
        print(counter.add(int(line)) if int(line) else group.size, flush=True)
"""

Start = Callable[[int], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def make(resilience: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, f"unix:{tmp_path}/place", str(resilience)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield make
    for process in started:
        process.kill()
        process.communicate()


def ask(worker: subprocess.Popen[str], number: int) -> int:
    assert worker.stdin
    assert worker.stdout
    worker.stdin.write(f"{number}\n")
    worker.stdin.flush()
    return int(worker.stdout.readline())


def joined(worker: subprocess.Popen[str]) -> int:
    """Its rank, once it has joined."""
    assert worker.stdout
    return int(worker.stdout.readline().split()[0])


def test_workers_that_start_at_once_make_one_group(start: Start) -> None:
    workers = [start(0) for _ in range(4)]
    assert sorted(map(joined, workers)) == [0, 1, 2, 3]
    assert [ask(worker, 1) for worker in workers] == [1, 2, 3, 4]


def test_whichever_ends_the_group_goes_on(start: Start) -> None:
    first, second, third = (start(1) for _ in range(3))
    ranks = sorted(map(joined, (first, second, third)))
    assert ranks == [0, 1, 2]
    assert ask(first, 5) == 5
    first.send_signal(signal.SIGKILL)
    first.wait(DEADLINE)
    fourth = start(1)
    joined(fourth)
    assert ask(fourth, 1) == 6
    second.send_signal(signal.SIGKILL)
    second.wait(DEADLINE)
    fifth = start(1)
    joined(fifth)
    assert ask(fifth, 1) == 7
    assert ask(third, 1) == 8


def test_when_all_have_ended_the_next_begins_anew(start: Start, tmp_path: Path) -> None:
    first, second = start(0), start(0)
    joined(first)
    joined(second)
    assert ask(first, 7) == 7
    for worker in (first, second):
        worker.send_signal(signal.SIGKILL)
        worker.wait(DEADLINE)
    left_behind = len(list((tmp_path / "place").iterdir()))
    third = start(0)
    assert joined(third) == 0
    assert ask(third, 0) == 1
    assert len(list((tmp_path / "place").iterdir())) < left_behind


def test_in_coroutines(tmp_path: Path) -> None:
    async def member() -> int:
        async with orca.join(at=f"unix:{tmp_path}/place", timeout="90s", size=3) as group:
            await group.barrier.aio()
            return group.rank

    async def main() -> list[int]:
        return sorted(await asyncio.gather(member(), member(), member()))

    assert asyncio.run(main()) == [0, 1, 2]  # `size` is waited for when the lock is given back


def test_one_that_does_not_come_in_is_not_waited_for(tmp_path: Path) -> None:
    place = MeetingPlace(f"unix:{tmp_path}/place")
    with contextlib.ExitStack() as lock:
        place.enter(lock, Deadline(None))
        with pytest.raises(orca.JoinFailed, match="process is still joining at"):
            orca.connect(at=f"unix:{tmp_path}/place", timeout=0)


def test_it_stands_alone(tmp_path: Path) -> None:
    with (
        pytest.raises(
            ValueError,
            match="at= joins a group or makes it: give neither seeds= nor listen= with it",
        ),
        orca.join(at="unix:x", seeds="unix:y"),
    ):
        pass
    with pytest.raises(ValueError, match='a directory for the sockets of one group, "unix:PATH"'):
        orca.connect(at="tcp:127.0.0.1:7")
    with pytest.raises(ValueError, match="the path is too long"):
        orca.connect(at=f"unix:{tmp_path}/{'x' * 100}")
