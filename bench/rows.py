"""Rows of the table: a figure beside its limit, the ratio of both, and the bar that it must meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orcalike.bench.bars import Bar, Limit
from orcalike.bench.harness import Spread, ratios


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, its limit, and the ratio of both, round by round."""

    what: str
    members: int
    unit: str
    ours: Spread
    beside: str
    theirs: Spread
    ratio: Spread
    bar: Bar | None
    rate: Spread | None  # writes a second, of all members together
    samples: dict[str, list[float]]

    @property
    def extra(self) -> Spread:
        """How much more the figure is than what stands beside it, round by round."""
        pairs = zip(self.samples["ours"], self.samples["theirs"], strict=True)
        return Spread.of([ours - theirs for ours, theirs in pairs])

    @property
    def limits(self) -> list[Limit]:
        """What the bar asks for."""
        if (bar := self.bar) is None:
            return []
        asked = (
            (self.ratio, bar.must, bar.aim, bar.at_least),
            (self.extra, bar.extra, bar.extra_aim, False),
            (self.ours, bar.most, bar.most_aim, False),
        )
        return [Limit(it, must, aim, most) for it, must, aim, most in asked if must is not None]

    @property
    def falls_short(self) -> bool:
        """Whether the bar is missed by more than the noise."""
        return any(limit.falls_short for limit in self.limits)

    @property
    def verdict(self) -> str:
        """In a word: `short`, `near` (half of the rounds miss the bar), `met` or `aim`."""
        if not self.limits:
            return ""
        if self.falls_short:
            return "short"
        if any(limit.near for limit in self.limits):
            return "near"
        return "aim" if all(limit.aimed for limit in self.limits) else "met"


def compare(
    what: str,
    members: int,
    unit: str,
    ours: list[float],
    beside: str,
    theirs: list[float],
    bar: Bar | None = None,
    rates: list[float] | None = None,
) -> Row:
    """A row of samples, in `unit`."""
    return Row(
        what,
        members,
        unit,
        Spread.of(ours),
        beside,
        Spread.of(theirs),
        Spread.of(ratios(ours, theirs)),
        bar,
        Spread.of(rates) if rates else None,
        {"ours": ours, "theirs": theirs, "rates": rates or []},
    )


def scaled(samples: Sequence[float], factor: float) -> list[float]:
    """In another unit."""
    return [sample * factor for sample in samples]
