"""Numbers of what a group itself is asked to do, which a witness knows too."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """The group's own operations, as they travel."""

    CREATE = 1
    FIND = 2
    DROP = 3
    WITHDRAW = 4
    FENCE = 5
    BARRIER = 6
    ATOMIC = 7
    ENDED = 8
    VOID = 9
    """In the place of an invocation that was taken back before it left."""
    IDLE = 11
    """All threads of a member wait for guards: for which."""
    AVAILABLE = 10
    """From here on a degree counts as far as the group has members for it."""
    DIGESTS = 12
    """What a member has seen of objects' states at places of the order. It does not count as delivered."""
