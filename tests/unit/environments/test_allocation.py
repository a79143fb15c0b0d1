"""The allocation of Slurm that a launcher runs in, by the variables that Slurm 22.05 has set."""

from __future__ import annotations

import pytest

from orcalike.environments.slurm import Node, find_allocation
from orcalike.errors import OrcalikeError

SCRIPT = {
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_TASKS_PER_NODE": "2,1(x2)",
    "SLURM_JOB_CPUS_PER_NODE": "4,2(x2)",
    "SLURM_CPUS_PER_TASK": "2",
}


def test_outside_of_an_allocation_there_are_no_nodes() -> None:
    assert find_allocation({}) is None
    assert find_allocation({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": ""}) is None


def test_nodes_have_the_tasks_and_cores_of_the_allocation() -> None:
    assert find_allocation(SCRIPT) == [Node("n1", 2, 4), Node("n2", 1, 2), Node("n3", 1, 2)]


def test_in_a_step_of_one_task_its_own_count_is_not_that_of_the_nodes() -> None:
    step = SCRIPT | {"SLURM_STEP_ID": "0", "SLURM_TASKS_PER_NODE": "1(x3)"}
    assert find_allocation(step) == find_allocation(SCRIPT)
    step["SLURM_CPUS_PER_TASK"] = ""
    assert find_allocation(step) == [Node("n1", 4, 4), Node("n2", 2, 2), Node("n3", 2, 2)]


def test_what_slurm_does_not_say() -> None:
    assert find_allocation({"SLURM_JOB_NODELIST": "a,b"}) == [Node("a", 1, 0), Node("b", 1, 0)]
    cores_only = {"SLURM_JOB_NODELIST": "a,b", "SLURM_JOB_CPUS_PER_NODE": "4,1"}
    assert find_allocation(cores_only) == [Node("a", 4, 4), Node("b", 1, 1)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLURM_JOB_NODELIST", "n[1-"),
        ("SLURM_TASKS_PER_NODE", "many"),
        ("SLURM_JOB_CPUS_PER_NODE", "4(x"),
    ],
)
def test_variables_that_make_no_sense_are_named(name: str, value: str) -> None:
    with pytest.raises(OrcalikeError, match=name):
        find_allocation(SCRIPT | {name: value})
