"""The workers of `torchrun`.

`MASTER_PORT` is that of its own store, which listens there: the group's ports are others. A worker that fails
has all workers started again, with other ranks, and with another `MASTER_PORT` if hosts came or went: so both
are part of what the job is recognised by, and ranks hold as long as it does. The run's id alone would not do:
it is "none" if the user gives none.
"""

from __future__ import annotations

from collections.abc import Mapping

from orcalike.environments.world import AtFirstHost, World, number, rank_and_size


def find(environ: Mapping[str, str]) -> World | None:
    """The workers that this process is of; raises OrcalikeError if its variables make no sense."""
    host, run = environ.get("MASTER_ADDR", ""), environ.get("TORCHELASTIC_RUN_ID", "")
    if not host or not run or not environ.get("RANK"):
        return None
    rank, size = rank_and_size(environ, "RANK", "WORLD_SIZE")
    return World(
        launcher="torchrun",
        rank=rank,
        size=size,
        job=f"{run} {host}:{environ.get('MASTER_PORT', '')}",
        meets=AtFirstHost(host),
        local_rank=number(environ, "LOCAL_RANK", 0),
        local_size=number(environ, "LOCAL_WORLD_SIZE", 1),
        restarts=number(environ, "TORCHELASTIC_RESTART_COUNT", 0),
    )
