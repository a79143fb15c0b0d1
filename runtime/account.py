"""What is known of operations that were too slow where messages are received (D07)."""

from __future__ import annotations

REPORT_EVERY = 10_000_000_000
"""ns between two reports of one operation."""


class Account:
    """What is known of one operation of one object that was too slow; it goes with the object."""

    def __init__(self) -> None:
        self.strikes: list[int] = []
        """When it was too slow, in the last minute: `budget.STRIKES` times at the most."""
        self.reported = -REPORT_EVERY
        self.within = 0
        """In pop-up threads: how often in a row it kept within the bound."""
