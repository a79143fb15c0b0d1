"""Programs that `srun` starts, on a real Slurm of three nodes: `python prog.py`, with nothing around it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lib.engine_program import expected, folders_of_jobs, lines_of, make_key, write_program
from tests.lib.processes import is_alive, until
from tests.lib.slurm import Slurm

STAYS = """
import os
import sys
import time

import orcalike as orca

with orca.join() as group:
    print(os.environ["SLURM_JOB_ID"], group.rank, os.getpid(), flush=True)
    while group.size > int(sys.argv[2]) and not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
    group.fence()
    print(f"rank {group.rank} ends", flush=True)
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Three nodes of four cores."""
    slurm = Slurm(tmp_path_factory.mktemp("slurm"), 3)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


@pytest.fixture(autouse=True)
def idle(slurm: Slurm) -> None:
    """Each test has all nodes."""
    slurm.wait_until_idle()


def facts_of(process: subprocess.Popen[str], count: int) -> tuple[str, dict[int, int]]:
    """(the job, each rank's process) that ranks of STAYS print."""
    assert process.stdout
    lines = [process.stdout.readline().split() for _ in range(count)]
    return lines[0][0], {int(rank): int(pid) for _, rank, pid in lines}


def test_three_nodes_are_one_group_as_under_orcalike_run(slurm: Slurm, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    ended = slurm.run("srun", "-N3", "-n6", sys.executable, program, "7", **make_key(tmp_path))
    lines, code = expected(program, 6, "7")
    assert (sorted(ended.stdout.splitlines()), ended.returncode) == (lines, code), ended.stderr
    assert (lines, code) == (lines_of(6), 7)


def test_one_node_needs_no_key_and_leaves_nothing(slurm: Slurm, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    ended = slurm.run("srun", "-N1", "-n3", sys.executable, program, **own)
    assert (sorted(ended.stdout.splitlines()), ended.returncode) == (lines_of(3), 0)
    assert folders_of_jobs() == []


def test_without_a_key_several_nodes_say_how_to_make_one(slurm: Slurm, tmp_path: Path) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    ended = slurm.run("srun", "-N2", "-n2", sys.executable, write_program(tmp_path), **own)
    assert ended.returncode == 1
    assert "InsecureConfig: the processes of this job may be on several hosts" in ended.stderr
    assert "orcalike keygen" in ended.stderr


def test_a_batch_script_is_no_task_and_its_step_is_a_group(slurm: Slurm, tmp_path: Path) -> None:
    """The script has a task's number, too: a program in it is alone."""
    program = write_program(tmp_path)
    script = tmp_path / "job.sh"
    printed = subprocess.run(
        [
            *(sys.executable, "-m", "orcalike", "slurm", "script", "-N", "3", "-n", "5"),
            program,
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    alone = f"{sys.executable} {program}\nenv | grep SLURM_PROCID\nexec srun"
    script.write_text(printed.replace("exec srun", alone))
    output = tmp_path / "output"
    key = make_key(tmp_path)
    sent = slurm.run("sbatch", "--parsable", f"--output={output}", str(script), **key)
    job = sent.stdout.strip()
    until(lambda: not slurm.run("squeue", "--noheader", "--job", job).stdout, pause=0.2)
    assert sorted(output.read_text().splitlines()) == sorted(
        ["SLURM_PROCID=0", "rank 0 of 1: 1", *lines_of(5)]
    )


def test_tasks_may_be_uneven(slurm: Slurm, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    uneven = f"env | grep SLURM_STEP_TASKS_PER_NODE >&2; exec {sys.executable} {program}"
    key = make_key(tmp_path)
    ended = slurm.run("srun", "-N2", "-n4", "--distribution=plane=3", "sh", "-c", uneven, **key)
    assert "SLURM_STEP_TASKS_PER_NODE=3,1" in ended.stderr
    assert (sorted(ended.stdout.splitlines()), ended.returncode) == (lines_of(4), 0)


def test_signals_of_the_engine_show_stacks_and_kill_no_member(slurm: Slurm, tmp_path: Path) -> None:
    program, sign = write_program(tmp_path, STAYS), tmp_path / "sign"
    command = ("srun", "-N2", "-n3", sys.executable, program, str(sign), "0")
    with slurm.started(*command, **make_key(tmp_path)) as process:
        job, _ = facts_of(process, 3)
        for number in ("USR1", "USR2"):
            assert slurm.run("scancel", f"--signal={number}", job).returncode == 0
        assert process.stderr
        stacks = 0
        while stacks < 6:
            stacks += process.stderr.readline().startswith("Current thread")
        sign.touch()
        out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert sorted(out.splitlines()) == [f"rank {rank} ends" for rank in range(3)]


def test_the_others_go_on_without_a_task_that_is_killed(slurm: Slurm, tmp_path: Path) -> None:
    program, sign = write_program(tmp_path, STAYS), tmp_path / "sign"
    command = ("srun", "-N3", "-n4", sys.executable, program, str(sign), "3")
    with slurm.started(*command, **make_key(tmp_path)) as process:
        _, pids = facts_of(process, 4)
        os.kill(pids[2], signal.SIGKILL)
        out, errors = process.communicate()
    assert re.search("task 2: Killed", errors), errors
    assert process.returncode == 128 + signal.SIGKILL
    assert sorted(out.splitlines()) == [f"rank {rank} ends" for rank in (0, 1, 3)]


def test_scancel_leaves_nothing(slurm: Slurm, tmp_path: Path) -> None:
    program, sign = write_program(tmp_path, STAYS), tmp_path / "sign"
    with slurm.started(
        *("srun", "-N3", "-n3", sys.executable, program, str(sign), "0"), **make_key(tmp_path)
    ) as process:
        job, pids = facts_of(process, 3)
        assert slurm.run("scancel", job).returncode == 0
        process.communicate()
        until(lambda: not any(map(is_alive, pids.values())), "all tasks have ended")
    assert process.returncode != 0


def test_each_task_with_a_launcher_of_its_own_is_refused(slurm: Slurm, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    run = (sys.executable, "-m", "orcalike", "run", "-n", "2", program)
    ended = slurm.run("srun", "-N1", "-n2", *run)
    assert ended.returncode == 2
    assert "that srun has started: each would run the whole program" in ended.stderr
    assert ended.stdout == ""


NODES = """
import os
import orcalike as orca
with orca.join() as group:
    group.barrier()
    print(group.size, os.environ["SLURMD_NODENAME"], flush=True)
    group.barrier()
"""
RUN = (sys.executable, "-m", "orcalike", "run", "--via", "slurm")


def test_orcalike_run_starts_its_agents_by_srun(slurm: Slurm, tmp_path: Path) -> None:
    program = write_program(tmp_path, NODES)
    result = slurm.run(*RUN, "-H", "n1:2,n2,n3", program, **make_key(tmp_path))
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[0] 4 n1", "[1] 4 n1", "[2] 4 n2", "[3] 4 n3"]


@pytest.mark.parametrize(
    ("allocation", "nodes"),
    [
        ("-N3 -n5", "n1 n1 n1 n2 n3"),
        ("-N2 -n3 -c2", "n1 n1 n2"),
        ("-N2 --ntasks-per-node=2", "n1 n1 n2 n2"),
        ("-N2 -n4 srun -N1 -n1", "n1 n1 n1 n2"),
    ],
)
def test_in_an_allocation_the_hosts_are_its_nodes(
    slurm: Slurm, tmp_path: Path, allocation: str, nodes: str
) -> None:
    """At the prompt that `salloc` gives, or in a step of one task, as `srun --pty bash` is."""
    program = write_program(tmp_path, NODES)
    command = ("salloc", *allocation.split(), *RUN, program)
    result = slurm.run(*command, **make_key(tmp_path))
    assert result.returncode == 0, result.stderr
    size = len(nodes.split())
    expected_lines = [f"[{rank}] {size} {node}" for rank, node in enumerate(nodes.split())]
    assert sorted(result.stdout.splitlines()) == expected_lines


def test_a_batch_script_may_have_a_launcher_over_its_nodes(slurm: Slurm, tmp_path: Path) -> None:
    program, output, script = write_program(tmp_path, NODES), tmp_path / "output", tmp_path / "job"
    script.write_text(f"#!/bin/sh\nexec {' '.join(RUN)} -q -n 3 {program}\n")
    options = ("--wait", "-N2", "-n4", f"--output={output}")
    sent = slurm.run("sbatch", *options, str(script), **make_key(tmp_path))
    assert sent.returncode == 0, output.read_text()
    assert sorted(output.read_text().splitlines()) == ["[0] 3 n1", "[1] 3 n1", "[2] 3 n1"]


def test_more_ranks_than_tasks_are_refused(slurm: Slurm, tmp_path: Path) -> None:
    program = write_program(tmp_path, NODES)
    result = slurm.run("salloc", "-N2", "-n3", *RUN, "-n", "4", program, **make_key(tmp_path))
    assert result.returncode == 2
    assert "-n 4 is more than the 3 slots of n1:2, n2:1: lower -n, or ask Slurm" in result.stderr
