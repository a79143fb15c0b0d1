"""`mpiexec` of MPICH and Intel MPI, whose Hydra says `PMI_RANK`, `PMI_SIZE`, and a descriptor to ask by.

`srun --mpi=pmi2` says the same beside a step's variables, and has no `MPI_LOCALNRANKS`: that is a step.
"""

from __future__ import annotations

from collections.abc import Mapping

from orcalike.environments.world import ByExchange, World, number, rank_and_size


def find(environ: Mapping[str, str]) -> World | None:
    """The job that this process is of; raises OrcalikeError if its variables make no sense."""
    needed = ("PMI_RANK", "PMI_SIZE", "PMI_FD", "MPI_LOCALNRANKS")
    if not all(environ.get(name) for name in needed):
        return None
    rank, size = rank_and_size(environ, "PMI_RANK", "PMI_SIZE")
    return World(
        launcher="mpiexec",
        rank=rank,
        size=size,
        job="",
        meets=ByExchange("pmi"),
        local_rank=number(environ, "MPI_LOCALRANKID", 0),
        local_size=number(environ, "MPI_LOCALNRANKS"),
        sign=f"{environ.get('PMI_HOSTNAME', '')}/{number(environ, 'PMI_FD')}",
    )
