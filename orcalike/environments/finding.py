"""Which launcher has started this process: the innermost of those that have left their variables.

A launcher within another one inherits the variables of the outer: torchrun and mpiexec start their helpers by
`srun` in a Slurm job, and their processes have a task's number that is the helper's. The outer one does not
see those of the inner. So the order is torchrun, Open MPI, MPICH, Slurm, Kubernetes; `orcalike run` goes
before all of them (`launch_protocol.environment`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from orcalike.environments import kubernetes, mpich, open_mpi, slurm, torchrun
from orcalike.environments.world import World
from orcalike.launch_protocol.environment import is_ranks_child
from orcalike.transport.record import Record

MARK = "ORCALIKE_WORLD"
"""The variable in which a rank leaves the mark of its world to what it starts."""

_FINDERS = (torchrun.find, open_mpi.find, mpich.find, slurm.find, kubernetes.find)


def is_off(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `ORCALIKE_DETECT=off`: no launcher but `orcalike run` is looked for."""
    return environ.get("ORCALIKE_DETECT", "").lower() == "off"


def find_world(environ: Mapping[str, str] = os.environ) -> World | None:
    """The world that this process belongs to; None for one that is alone, or that a rank has started.

    Raises OrcalikeError if a launcher's variables make no sense.
    """
    world = next(filter(None, (find(environ) for find in _FINDERS)), None)
    if world is None or world.size == 1:
        return None
    is_child = environ.get(MARK) == world.mark and is_ranks_child(environ)
    return None if is_child else world


class Unmet(Record):
    """A world in which no process finds the others."""

    launcher: str
    rank: str
    size: int


_UNMET = (
    ("mpiexec (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE"),
    ("mpiexec (MVAPICH)", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
)
"""A launcher, the variable with this process's rank, and how many there are."""


def find_unmet(environ: Mapping[str, str] = os.environ) -> Unmet | None:
    """A world whose launcher does not say how its processes can meet; None if there is none."""
    if any(find(environ) for find in _FINDERS):
        return None
    for launcher, rank, size in _UNMET:
        count = environ.get(size, "")
        if environ.get(rank) and count.isdecimal() and int(count) > 1:
            return Unmet(launcher, environ[rank], int(count))
    return None
