"""What becomes of a replica that has met a fault of its own process (H10)."""

from __future__ import annotations

import logging
from typing import Any

from orcalike.runtime.errors import ReplicaDivergence
from orcalike.runtime.invocation import name_of
from orcalike.runtime.replica import Replica

FAULTY = 4096

_log = logging.getLogger("orcalike")


def diverged(runtime: Any, operation: Any, where: Replica | None, error: BaseException) -> None:
    """A fault of this replica alone, not a result: it stops serving.

    `where` is the replica that met it, where it was one; the others may differ through it too.
    """
    if runtime.sender.failure is not None and not runtime.barred:
        return
    if isinstance(error, ReplicaDivergence):
        why = str(error)
    else:
        place = "" if where is None else f" of {where.name!r}"
        why = (
            f"{name_of(operation)}{place} ended with {error!r} here, which is no result but "
            "a fault of this process"
        )
    failure = ReplicaDivergence(
        f"{why}. Its objects may differ from the other members', and serve no more: mend that, "
        "and join again, which gives it the group's state"
    )
    _log.critical("%s", failure)
    for replica in runtime.replicas:
        if replica is not None:
            replica.mark(FAULTY)
    runtime.donor.fail(failure)
    runtime.sender.failure, runtime.barred = failure, False
    runtime.events.failed(failure)
