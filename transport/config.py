"""What a stack is configured with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StackConfig:
    """The part of a group's configuration that the protocol core needs."""

    group: str = "default"
    """The group's name: each name is a group with an order of its own (A66)."""
    options: dict[str, Any] = field(default_factory=dict)
    """What all members must agree on; a joiner's None means "as the group has it"."""
    epoch: int = 0
    """Nanoseconds between the driver's monotonic clock and the wall clock."""
    detection: int = 500_000_000
    """D, ns: a member that is not heard for so long is suspected."""
    slow: int = 60_000_000_000
    """`slow_timeout`, ns: a member that beats and stays behind for so long is expelled."""
    unanimous: int = 0
    """How many ranks must be there, and in no view, before rank 0 makes the group; 0: it is made otherwise."""
    freshness: int = 1_000_000
    """How late what is in shared memory may be delivered where nothing waits for it, ns."""
