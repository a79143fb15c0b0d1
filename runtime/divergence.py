"""What becomes of a replica that has met a fault of its own process (H10)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from orcalike.runtime.errors import ReplicaDivergence
from orcalike.runtime.invocation import name_of
from orcalike.runtime.replica import FAULTY, Replica
from orcalike.transport.wording import repr_of

if TYPE_CHECKING:
    from orcalike.runtime.events import Events
    from orcalike.runtime.invoked import Titled

_log = logging.getLogger("orcalike")


if TYPE_CHECKING:

    class Refusing(Protocol):
        """A sender, as far as it takes part."""

        failure: Exception | None

    class Giving(Protocol):
        """What gives the state to joiners, as far as it takes part."""

        def fail(self, error: Exception) -> None:
            """This replica's state is for no joiner."""

    class Diverging(Protocol):
        """The runtime, as far as a fault of its own process takes it."""

        barred: bool

        @property
        def events(self) -> Events:
            """For the session."""

        @property
        def sender(self) -> Refusing:
            """Whose calls raise from then on."""

        @property
        def donor(self) -> Giving:
            """Which gives no state from then on."""

        @property
        def replicas(self) -> Sequence[Replica | None]:
            """By number."""


def diverged(
    runtime: Diverging, operation: Titled | str | None, where: Replica | None, error: BaseException
) -> None:
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
            f"{name_of(operation)}{place} ended with {repr_of(error)} here, which is no result but "
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
