"""A step of Slurm: the tasks that one `srun` has started; and the allocation in which a launcher runs.

The script that `sbatch` runs is no step, although it has `SLURM_PROCID=0` and `SLURM_NTASKS`: so only
variables of the step are read. The tasks of the nodes may be uneven (`3,1`): nothing is computed from them.

A launcher in that script, or at the prompt of `salloc`, has the nodes of the whole allocation.
"""

from __future__ import annotations

from collections.abc import Mapping

from orcalike.environments.hostlist import expand, expand_counts
from orcalike.environments.world import AtFirstHost, World, number, rank_and_size
from orcalike.errors import OrcalikeError
from orcalike.transport.record import Record

HOSTS = 4
"""Hosts of the step that are of interest: the first, and some towards which there is a way."""

SCONTROL_WITHIN = 10.0
"""Seconds that Slurm has to say where a node is."""


def find(environ: Mapping[str, str]) -> World | None:
    """The step that this process is a task of; raises OrcalikeError if its variables make no sense."""
    step = environ.get("SLURM_STEP_ID", "")
    if not step or not environ.get("SLURM_STEP_NUM_TASKS"):
        return None
    rank, size = rank_and_size(environ, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
    try:
        hosts = expand(environ.get("SLURM_STEP_NODELIST", ""), HOSTS)
    except ValueError as error:
        raise OrcalikeError(f"SLURM_STEP_NODELIST: {error}") from None
    is_on_one_node = number(environ, "SLURM_STEP_NUM_NODES", 0) == 1
    if not is_on_one_node and environ.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        raise OrcalikeError(
            "srun --distribution=arbitrary: task 0 may be on any node, and the others cannot know on "
            "which; use block or cyclic"
        )
    return World(
        launcher="srun",
        rank=rank,
        size=size,
        job=f"{environ.get('SLURM_JOB_ID', '')}.{step}",
        meets=AtFirstHost(hosts[0], tuple(hosts[1:]), address_of_node),
        local_rank=number(environ, "SLURM_LOCALID", 0),
        local_size=size if is_on_one_node else 1,
        restarts=number(environ, "SLURM_RESTART_COUNT", 0),
    )


class Node(Record):
    """A node of an allocation."""

    name: str
    tasks: int
    """How many tasks it was allocated for."""
    cores: int
    """How many of its cores the allocation has; 0 if Slurm does not say."""


def find_allocation(environ: Mapping[str, str]) -> list[Node] | None:
    """The nodes of the allocation that this process runs in; None outside of one.

    Raises OrcalikeError if its variables make no sense.
    """
    text = environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        return None
    try:
        names = expand(text)
    except ValueError as error:
        raise OrcalikeError(f"SLURM_JOB_NODELIST: {error}") from None
    cores = _counts(environ, "SLURM_JOB_CPUS_PER_NODE", len(names)) or [0] * len(names)
    tasks = None
    if not environ.get("SLURM_STEP_ID"):  # in a step they are the step's own
        tasks = _counts(environ, "SLURM_TASKS_PER_NODE", len(names))
    if tasks is None:
        of_one = max(1, number(environ, "SLURM_CPUS_PER_TASK", 1))
        tasks = [max(1, each // of_one) for each in cores]
    return [Node(*each) for each in zip(names, tasks, cores, strict=True)]


def _counts(environ: Mapping[str, str], name: str, hosts: int) -> list[int] | None:
    """A number for each host; None if the variable is not set, or is for other hosts."""
    text = environ.get(name, "")
    try:
        counts = expand_counts(text) if text else []
    except ValueError as error:
        raise OrcalikeError(f"{name}: {error}") from None
    return counts if len(counts) == hosts else None


def address_of_node(node: str) -> str:
    """Where Slurm itself reaches a node whose name only Slurm knows; "" if it does not say."""
    import shutil  # not at the top: each program looks whether it is a Slurm task
    import subprocess

    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return ""
    try:
        answer = subprocess.run(
            [scontrol, "--oneliner", "show", "node", node],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SCONTROL_WITHIN,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    fields = dict(field.partition("=")[::2] for field in answer.split())
    return fields.get("NodeAddr", "")
