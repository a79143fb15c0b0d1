"""Programs that `mpiexec` starts, Open MPI's and MPICH's: `python prog.py`, with nothing around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.engine_program import expected, folders_of_jobs, lines_of, make_key, write_program
from tests.lib.mpi import Mpi

BESIDE_MPI = """
import sys

import orcalike as orca
from orcalike.objects import Counter

if sys.argv[1] == "before":
    from mpi4py import MPI

with orca.join() as group:
    total = group.share(Counter, "total")
    total.add(1)
    group.barrier()
    seen = total.get()
    if sys.argv[1] == "inside":
        from mpi4py import MPI

        assert MPI.COMM_WORLD.allreduce(group.rank) == 3
    group.barrier()
from mpi4py import MPI

world = MPI.COMM_WORLD
assert (world.rank, world.size) == (group.rank, 3)
print(f"{seen} {world.allreduce(world.rank)}\\n", end="", flush=True)
"""

RAISES = """
import orcalike as orca
from orcalike.objects import Event

with orca.join() as group:
    if group.rank == 1:
        raise ValueError("of rank 1")
    group.share(Event, "never").wait()
    print("ends", flush=True)
"""

CHILD = """
import subprocess
import sys

import orcalike as orca

with orca.join() as group:
    if sys.argv[1:]:
        print("child", group.size, flush=True)
    else:
        if group.rank == 1:
            subprocess.run([sys.executable, __file__, "child"], check=True)
        group.barrier()
"""


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, tmp_path: Path) -> Mpi:
    """Each of the two."""
    return Mpi(request.param, tmp_path)


def test_on_one_host_as_under_orcalike_run(mpi: Mpi, tmp_path: Path) -> None:
    """No key is needed, and nothing stays."""
    program = write_program(tmp_path)
    ended = mpi.run(3, program, XDG_CONFIG_HOME=str(tmp_path))
    lines, code = expected(program, 3)
    assert (sorted(ended.stdout.splitlines()), ended.returncode) == (lines, code), ended.stderr
    assert folders_of_jobs() == []


def test_the_exit_code_is_the_programs(mpi: Mpi, tmp_path: Path) -> None:
    assert mpi.run(2, write_program(tmp_path), "7").returncode == 7


def test_a_rank_that_raises_ends_all(mpi: Mpi, tmp_path: Path) -> None:
    """Those that wait for it do not hang, and the error is shown."""
    ended = mpi.run(3, write_program(tmp_path, RAISES))
    assert ended.returncode == 1
    assert "ValueError: of rank 1" in ended.stderr
    assert "ends" not in ended.stdout


def test_over_hosts_the_launcher_passes_addresses_on(mpi: Mpi, tmp_path: Path) -> None:
    program = write_program(tmp_path)
    ended = mpi.run(4, program, hosts=True, **make_key(tmp_path))
    assert (sorted(ended.stdout.splitlines()), ended.returncode) == (lines_of(4), 0), ended.stderr


def test_over_hosts_a_key_is_needed(mpi: Mpi, tmp_path: Path) -> None:
    own = str(tmp_path)
    ended = mpi.run(2, write_program(tmp_path), hosts=True, XDG_CONFIG_HOME=own)
    assert ended.returncode != 0
    assert "InsecureConfig: the processes of this job may be on several hosts" in ended.stderr


@pytest.mark.parametrize(
    ("mpi", "order"),  # MPICH's "after": the next test
    [("mpich", "before"), ("mpich", "inside"), ("openmpi", "before"), ("openmpi", "after")],
    indirect=["mpi"],
)
def test_mpi4py_in_the_same_program(mpi: Mpi, tmp_path: Path, order: str) -> None:
    """It initialises MPI when it is imported: before a group is joined, meanwhile, or afterwards."""
    ended = mpi.run(3, write_program(tmp_path, BESIDE_MPI), order)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "3 3\n" * 3


def test_mpi4py_over_hosts(tmp_path: Path) -> None:
    """MPICH's: Open MPI does not take one host for two."""
    mpi = Mpi("mpich", tmp_path)
    program = write_program(tmp_path, BESIDE_MPI)
    ended = mpi.run(3, program, "after", hosts=True, **make_key(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "3 3\n" * 3


def test_what_a_rank_starts_is_no_rank(mpi: Mpi, tmp_path: Path) -> None:
    ended = mpi.run(2, write_program(tmp_path, CHILD))
    assert (ended.stdout, ended.returncode) == ("child 1\n", 0), ended.stderr
    assert "was started by rank 1, and is no rank" in ended.stderr
