"""Which launcher a process finds, by the variables that each one has been seen to set."""

from __future__ import annotations

import os
import socket

import pytest

import orcalike as orca
from orcalike.environments.finding import MARK, find_unmet, find_world, is_off
from orcalike.environments.kubernetes import PORT
from orcalike.environments.ports import COUNT, FIRST, LAST, ports_of
from orcalike.environments.world import AtFirstHost, AtNames, ByExchange
from orcalike.errors import OrcalikeError

BATCH_SCRIPT = {
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "0",
    "SLURM_STEP_ID": "",
    "SLURM_TASKS_PER_NODE": "2(x2)",
}
SLURM = BATCH_SCRIPT | {
    "SLURM_LOCALID": "1",
    "SLURM_PROCID": "3",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n[1-6]",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "3,1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_LOCAL_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "6",
    "PMIX_NAMESPACE": "prterun-a-18386@1",
}
MPICH = {
    "MPI_LOCALNRANKS": "2",
    "MPI_LOCALRANKID": "0",
    "PMI_FD": "9",
    "PMI_HOSTNAME": "a",
    "PMI_RANK": "0",
    "PMI_SIZE": "2",
}
TORCHRUN = {
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "node1",
    "MASTER_PORT": "29500",
    "RANK": "2",
    "TORCHELASTIC_RUN_ID": "none",
    "WORLD_SIZE": "4",
}


def test_a_slurm_step() -> None:
    world = find_world(SLURM)
    assert world is not None
    assert (world.launcher, world.rank, world.size, world.local_rank) == ("srun", 3, 4, 1)
    assert world.job == "7.0"
    assert isinstance(world.meets, AtFirstHost)
    assert (world.meets.host, world.meets.others) == ("n1", ("n2", "n3", "n4"))
    assert not world.is_on_one_host


def test_a_step_on_one_node() -> None:
    world = find_world(SLURM | {"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "n1"})
    assert world is not None
    assert world.is_on_one_host


def test_the_script_of_sbatch_is_no_step() -> None:
    assert find_world(BATCH_SCRIPT) is None
    assert find_unmet(BATCH_SCRIPT) is None


def test_srun_with_pmi2_is_a_step() -> None:
    pmi2 = {"PMI_FD": "11", "PMI_JOBID": "7.0", "PMI_RANK": "3", "PMI_SIZE": "4"}
    world = find_world(SLURM | pmi2)
    assert world is not None
    assert world.launcher == "srun"


def test_open_mpi() -> None:
    world = find_world(OPEN_MPI)
    assert world is not None
    assert (world.launcher, world.rank, world.size) == ("mpiexec (Open MPI)", 1, 6)
    assert (world.local_rank, world.is_on_one_host) == (2, False)
    assert (world.job, world.meets) == ("prterun-a-18386@1", ByExchange("pmix"))
    whole = find_world(OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "6"})
    assert whole is not None
    assert whole.is_on_one_host


def test_mpich() -> None:
    world = find_world(MPICH)
    assert world is not None
    assert (world.launcher, world.rank, world.size, world.job) == ("mpiexec", 0, 2, "")
    assert (world.is_on_one_host, world.meets) == (True, ByExchange("pmi"))


def test_torchrun() -> None:
    world = find_world(TORCHRUN)
    assert world is not None
    assert (world.launcher, world.rank, world.size) == ("torchrun", 2, 4)
    assert world.meets == AtFirstHost("node1")
    again = find_world(TORCHRUN | {"MASTER_PORT": "29501"})
    assert again is not None
    assert again.job != world.job  # all workers were started again


def test_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "solve-1")
    pod = {"JOB_COMPLETION_INDEX": "1", "ORCALIKE_WORLD_SIZE": "2"}
    world = find_world(pod)
    assert world is not None
    assert (world.launcher, world.rank, world.size, world.job) == ("kubernetes", 1, 2, "solve")
    assert world.meets == AtNames(tuple(f"tcp:solve-{i}.solve:{PORT}" for i in range(2)))
    other = find_world(pod | {"ORCALIKE_SERVICE": "peers"})
    assert other is not None
    assert other.meets == AtNames(tuple(f"tcp:solve-{i}.peers:{PORT}" for i in range(2)))
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop")
    with pytest.raises(OrcalikeError, match="host name is 'laptop', not JOB-1"):
        find_world(pod)


@pytest.mark.parametrize(
    ("inner", "launcher"),
    [(TORCHRUN, "torchrun"), (OPEN_MPI, "mpiexec (Open MPI)"), (MPICH, "mpiexec")],
)
def test_the_innermost_launcher_is_meant(inner: dict[str, str], launcher: str) -> None:
    """They start helpers by srun, whose task's number each process has that a helper starts."""
    world = find_world(SLURM | inner)
    assert world is not None
    assert world.launcher == launcher


@pytest.mark.parametrize(
    "variables",
    [
        SLURM | {"SLURM_PROCID": "4"},
        SLURM | {"SLURM_PROCID": ""},
        SLURM | {"SLURM_PROCID": "-1"},
        SLURM | {"SLURM_STEP_NUM_TASKS": "99999999999999999999"},
        SLURM | {"SLURM_STEP_NODELIST": "n["},
        SLURM | {"SLURM_DISTRIBUTION": "arbitrary"},
        OPEN_MPI | {"OMPI_COMM_WORLD_SIZE": "none"},
        MPICH | {"PMI_FD": "x"},
        TORCHRUN | {"WORLD_SIZE": "\N{SUPERSCRIPT TWO}"},
    ],
)
def test_variables_that_make_no_sense_are_refused(variables: dict[str, str]) -> None:
    with pytest.raises(OrcalikeError):
        find_world(variables)


def test_one_process_is_no_world() -> None:
    assert find_world({}) is None
    assert find_world(SLURM | {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}) is None


def test_a_program_that_asks_for_a_group_of_one_is_in_no_world(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process of a job may have one of its own."""
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    with orca.join(size=1) as group:
        assert (group.size, group.rank) == (1, 0)


def test_what_a_rank_starts_is_of_no_world_but_of_another_launchers() -> None:
    world = find_world(SLURM)
    assert world is not None
    left = {MARK: world.mark, "ORCALIKE_RANK_PID": str(os.getpid() + 1)}
    assert find_world(SLURM | left) is None
    assert find_unmet(SLURM | left) is None
    assert find_world(SLURM | left | {"SLURM_STEP_ID": "1"}) is not None
    assert find_world(SLURM | left | {"ORCALIKE_RANK_PID": str(os.getpid())}) is not None


def test_a_launcher_that_does_not_say_how_to_meet() -> None:
    for variables in (
        {"PMI_RANK": "1", "PMI_SIZE": "4"},
        {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "4"},
    ):
        assert find_world(variables) is None
        unmet = find_unmet(variables)
        assert unmet is not None
        assert (unmet.rank, unmet.size) == ("1", 4)


def test_it_can_be_switched_off() -> None:
    assert is_off({"ORCALIKE_DETECT": "off"})
    assert not is_off({"ORCALIKE_DETECT": "on"})
    assert not is_off({})


def test_ports_follow_from_the_job() -> None:
    ports = ports_of("7.0")
    assert ports == ports_of("7.0")
    assert ports != ports_of("7.1")
    assert len(set(ports)) == COUNT
    assert all(FIRST <= port <= LAST for number in range(500) for port in ports_of(str(number)))
