"""`mpiexec` of Open MPI, 4 or 5. Rank 1 may be local rank 2: nothing is computed from ranks."""

from __future__ import annotations

from collections.abc import Mapping

from orcalike.environments.world import ByExchange, World, number, rank_and_size


def find(environ: Mapping[str, str]) -> World | None:
    """The job that this process is of; raises OrcalikeError if its variables make no sense."""
    if not environ.get("OMPI_COMM_WORLD_RANK") or not environ.get("PMIX_NAMESPACE"):
        return None
    rank, size = rank_and_size(environ, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
    return World(
        launcher="mpiexec (Open MPI)",
        rank=rank,
        size=size,
        job=environ["PMIX_NAMESPACE"],
        meets=ByExchange("pmix"),
        local_rank=number(environ, "OMPI_COMM_WORLD_LOCAL_RANK", 0),
        local_size=number(environ, "OMPI_COMM_WORLD_LOCAL_SIZE", 1),
    )
