"""What a stack is configured with."""

from __future__ import annotations

from typing import Any

from orcalike.transport.record import Record


class StackConfig(Record):
    """The part of a group's configuration that the protocol core needs."""

    group: str
    """The group's name: each name is a group with an order of its own (A66)."""
    options: dict[str, Any]
    """What all members must agree on; a joiner's None means "as the group has it"."""
    epoch: int
    """Nanoseconds between the driver's monotonic clock and the wall clock."""
    detection: int
    """D, ns: a member that is not heard for so long is suspected."""
    slow: int
    """`slow_timeout`, ns: a member that beats and stays behind for so long is expelled."""
    unanimous: int
    """How many ranks must be there, and in no view, before rank 0 makes the group; 0: it is made otherwise."""
    freshness: int
    """How late what is in shared memory may be delivered where nothing waits for it, ns."""

    def __init__(
        self,
        group: str = "default",
        options: dict[str, Any] | None = None,
        epoch: int = 0,
        detection: int = 500_000_000,
        slow: int = 60_000_000_000,
        unanimous: int = 0,
        freshness: int = 1_000_000,
    ) -> None:
        known = {} if options is None else options
        super().__init__(group, known, epoch, detection, slow, unanimous, freshness)
