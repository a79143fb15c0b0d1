"""An indexed Job of Kubernetes, as `orcalike k8s manifest` writes it.

The pod of index i is the host `JOB-i`, and the others reach it at `JOB-i.SERVICE`. The service has the name of
the job, unless `ORCALIKE_SERVICE` says another one.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

from orcalike.environments.world import AtNames, World, rank_and_size
from orcalike.errors import OrcalikeError

PORT = 7471
"""Where each pod listens."""


def find(environ: Mapping[str, str]) -> World | None:
    """The job that this process is a pod of; raises OrcalikeError if its variables make no sense."""
    index = environ.get("JOB_COMPLETION_INDEX", "")
    if not index or not environ.get("ORCALIKE_WORLD_SIZE") or "ORCALIKE_RANK" in environ:
        return None
    rank, size = rank_and_size(environ, "JOB_COMPLETION_INDEX", "ORCALIKE_WORLD_SIZE")
    host = socket.gethostname().partition(".")[0]
    job = host.removesuffix(f"-{rank}")
    if job == host:
        raise OrcalikeError(
            f"JOB_COMPLETION_INDEX={rank}, but the pod's host name is {host!r}, not JOB-{rank}: the "
            "job's pods need a subdomain (see `orcalike k8s manifest`)"
        )
    service = environ.get("ORCALIKE_SERVICE") or job
    return World(
        launcher="kubernetes",
        rank=rank,
        size=size,
        job=job,
        meets=AtNames(tuple(f"tcp:{job}-{each}.{service}:{PORT}" for each in range(size))),
    )
