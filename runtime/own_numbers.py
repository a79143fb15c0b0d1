"""Random numbers of one process's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


def numbers_of_reads(seed: int, position: int) -> Random:
    """What reads of the member at that position draw from, in a group of that seed."""
    from random import Random  # few programs draw

    return Random(f"{seed} reads {position}")
