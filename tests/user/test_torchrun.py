"""Programs that `torchrun` starts, by its variables: torch itself is too large to be had for a test."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest

from orcalike.environments.ports import ports_of
from tests.lib import warm
from tests.lib.engine_program import expected, lines_of, make_key, write_program
from tests.lib.processes import DEADLINE

STAYS = """
import os
import sys
import time

import orcalike as orca
from orcalike.objects import Counter

with orca.join() as group:
    total = group.share(Counter, "total")
    if "again" in sys.argv:
        print(f"again {group.rank}: {total.get()}", flush=True)
        total.add(1)
    else:
        total.add(1)
        group.barrier()
        print("in", flush=True)
        while total.get() < 4:
            time.sleep(0.02)
    group.barrier()
    print(f"rank {group.rank} ends", flush=True)
"""


class Workers:
    """As torchrun has them: `hosts` agents with one worker each, or one agent with all.

    A worker is known by its variables alone, so that it may as well be a fork.
    """

    def __init__(self, directory: Path) -> None:
        """A run is known by its directory; those of tests that run at the same time have other ports."""
        self._environment = os.environ | make_key(directory) | {"PYTHONHASHSEED": "0"}
        self.run = blake2b(bytes(directory), digest_size=6).hexdigest()
        self.started: list[warm.Fork] = []

    def start(self, rank: int, size: int, *command: str, on_one: bool = False) -> None:
        """One worker."""
        variables = {
            "LOCAL_RANK": str(rank if on_one else 0),
            "LOCAL_WORLD_SIZE": str(size if on_one else 1),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "RANK": str(rank),
            "TORCHELASTIC_RUN_ID": self.run,
            "WORLD_SIZE": str(size),
        }
        self.started.append(warm.Fork(*command, env=self._environment | variables))

    def start_all(self, size: int, *command: str, on_one: bool = False) -> None:
        """All workers of a run."""
        for rank in range(size):
            self.start(rank, size, *command, on_one=on_one)

    def end(self) -> tuple[list[str], int, str]:
        """(lines in some order, the first exit code that is not 0, standard errors)."""
        outputs = [process.communicate("", DEADLINE) for process in self.started]
        codes = [process.wait() for process in self.started]
        lines = sorted(line for out, _ in outputs for line in out.splitlines())
        return lines, next(filter(None, codes), 0), "".join(errors for _, errors in outputs)

    def close(self) -> None:
        """End those that still run."""
        for process in self.started:
            with process:
                process.kill()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    """Workers, which end with the test."""
    with contextlib.closing(Workers(tmp_path)) as workers:
        yield workers


@pytest.mark.parametrize("on_one", [True, False])
def test_workers_are_one_group_as_under_orcalike_run(
    workers: Workers, tmp_path: Path, on_one: bool
) -> None:
    program = write_program(tmp_path)
    workers.start_all(3, program, "7", on_one=on_one)
    lines, code, errors = workers.end()
    assert (lines, code) == (lines_of(3), 7), errors
    if on_one:
        assert (lines, code) == expected(program, 3, "7")


@pytest.mark.parametrize(("rank", "on_one"), [(0, True), (1, False)])
def test_a_worker_that_is_started_again_comes_back(
    workers: Workers, tmp_path: Path, rank: int, on_one: bool
) -> None:
    """On one host rank 0 too; over several that one has no address of the others, and waits for them."""
    program = write_program(tmp_path, STAYS)
    workers.start_all(3, program, on_one=on_one)
    for process in workers.started:
        assert process.stdout
        assert process.stdout.readline() == "in\n"
    killed = workers.started.pop(rank)
    with killed:
        killed.kill()
    workers.start(rank, 3, program, "again", on_one=on_one)
    lines, code, errors = workers.end()
    assert (lines, code) == ([f"again {rank}: 3", *(f"rank {r} ends" for r in range(3))], 0), errors


def test_rank_0_alone_makes_no_second_group(workers: Workers, tmp_path: Path) -> None:
    """Over several hosts: the others stay what they are."""
    program = write_program(tmp_path, STAYS)
    workers.start_all(3, program)
    for process in workers.started:
        assert process.stdout
        assert process.stdout.readline() == "in\n"
    killed = workers.started.pop(0)
    with killed:
        killed.kill()
    with contextlib.closing(Workers(tmp_path)) as alone:
        alone.start(0, 3, program, "again")
        (process,) = alone.started
        while "did not answer that the group is to be made" not in (
            line := process.stderr.readline()
        ):
            assert line, "it ended"
        assert "ranks 1 and 2 of 3" in line
        process.kill()
        printed, _ = process.communicate("", DEADLINE)
    assert printed == ""


@contextlib.contextmanager
def mute(port: int) -> Iterator[None]:
    """A process of others that has the port, lets all come, and says nothing."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        yield


def test_ports_that_others_have_are_passed_over(workers: Workers, tmp_path: Path) -> None:
    first, second, *_ = ports_of(f"{workers.run} 127.0.0.1:29500")
    program = write_program(tmp_path)
    with mute(first), mute(second):
        workers.start_all(2, program)
        lines, code, errors = workers.end()
    assert (lines, code) == (lines_of(2), 0), errors


def test_two_launchers_with_one_job_make_no_second_group(workers: Workers, tmp_path: Path) -> None:
    """The same variables twice: the second process of a rank is refused, or waits; none is alone."""
    program = write_program(tmp_path, STAYS)
    workers.start_all(3, program)
    for process in workers.started:
        assert process.stdout
        assert process.stdout.readline() == "in\n"
    with contextlib.closing(Workers(tmp_path)) as second:
        second.start(0, 3, program, "again", on_one=False)
        (process,) = second.started
        try:
            process.wait(20)
        except TimeoutError:
            process.kill()
            out, errors = process.communicate("", DEADLINE)[0], "waits"
        else:
            out, errors = process.communicate("", DEADLINE)
    assert "ends" not in out
    assert errors
    for process in workers.started:
        process.kill()
