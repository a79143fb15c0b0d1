"""What a member knows of the application's state."""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """How much of it a member has."""

    NONE = 0
    EMPTY = 1
    """There was none yet, unless a member that is not there has it."""
    BEHIND = 2
    """A state that is whole, but for packets that were tentative before it: others may have delivered them."""
    WHOLE = 3
