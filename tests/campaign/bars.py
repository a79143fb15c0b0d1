"""What a campaign is measured by: the bars of docs/testing.md, and what came of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Figure:
    """What was measured for one bar."""

    goal: str
    figure: str
    met: bool
    notes: list[str] = field(default_factory=list)
    """What went wrong, and how to see it again."""
    figures: dict[str, float] = field(default_factory=dict)
    """For the record that is kept over runs."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything: 1 is a campaign's T1."""

    times: float = 1.0
    tier: int = 1

    def of(self, one: int, two: int) -> int:
        """So many in this tier, scaled; one at the least."""
        return max(1, int((two if self.tier >= 2 else one) * self.times))


@dataclass(frozen=True, slots=True)
class Bar:
    """One or more goals that are measured together."""

    goals: tuple[str, ...]
    must: dict[str, str]
    """By goal, in words."""
    measure: Callable[[Scale], list[Figure]]


def percentile(values: list[float], part: float) -> float:
    """The value below which that part of them lies; infinite if there is none, which meets no bar."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else math.inf


def table(rows: list[tuple[str, str, str, str]]) -> str:
    """Rows under their heads, each column as wide as it must be."""
    rows = [("BAR", "MUST", "FIGURE", "VERDICT"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
