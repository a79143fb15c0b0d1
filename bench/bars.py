"""What a row of the table must reach, and what is aimed at."""

from __future__ import annotations

from dataclasses import dataclass

from orcalike.bench.harness import Spread


@dataclass(frozen=True)
class Limit:
    """One thing that a bar asks of a row's samples: at most `must`, or `at_least`."""

    samples: Spread
    must: float
    aim: float | None
    at_least: bool = False

    def met(self, value: float, wanted: float) -> bool:
        """Whether a value is on the right side of another one."""
        return value >= wanted if self.at_least else value <= wanted

    @property
    def falls_short(self) -> bool:
        """Whether three quarters of the rounds miss it.

        Half of the rounds on the wrong side may be the machine's; three quarters are not.
        """
        best = self.samples.high if self.at_least else self.samples.low
        return not self.met(best, self.must)

    @property
    def near(self) -> bool:
        """Whether half of the rounds miss it."""
        return not self.met(self.samples.median, self.must)

    @property
    def aimed(self) -> bool:
        """Whether the median is where it is wanted."""
        return self.aim is not None and self.met(self.samples.median, self.aim)


@dataclass(frozen=True)
class Bar:
    """What a row must reach, and what is aimed at: all that is not None."""

    must: float | None = None
    """The ratio: at most, or `at_least`."""
    aim: float | None = None
    at_least: bool = False
    extra: float | None = None
    """How much more the figure may be than what stands beside it, in its unit."""
    extra_aim: float | None = None
    most: float | None = None
    """What the figure itself may be, in its unit: only for what has no yardstick."""
    most_aim: float | None = None

    def words(self, unit: str, *, aim: bool = False) -> str:
        """What must be, or what is aimed at, as a table has it; `unit` is the figure's."""
        ratio, extra, most = (
            (self.aim, self.extra_aim, self.most_aim) if aim else (self.must, self.extra, self.most)
        )
        words = [] if ratio is None else [f"{ratio:g}x" + (" or more" if self.at_least else "")]
        words += [] if extra is None else [f"+{extra:g} {unit}"]
        words += [] if most is None else [f"{most:g} {unit}"]
        return ", ".join(words)
