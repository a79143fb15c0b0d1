"""A step of Slurm: the tasks that one `srun` has started.

The script that `sbatch` runs is no step, although it has `SLURM_PROCID=0` and `SLURM_NTASKS`: so only
variables of the step are read. The tasks of the nodes may be uneven (`3,1`): nothing is computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping

from orcalike.environments.hostlist import expand
from orcalike.environments.world import AtFirstHost, World, number, rank_and_size
from orcalike.errors import OrcalikeError

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
