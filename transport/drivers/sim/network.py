"""The simulated network: the ways between two addresses.

A *path* is the way from one address to another, in one direction: how long it takes, and what is
wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orcalike.transport.drivers.sim.streams import Stream


@dataclass(frozen=True, slots=True)
class Delays:
    """How long things travel, in ns: a minimum, an exponential tail, and now and then much longer."""

    least: int = 10_000
    mean: int = 50_000
    connect: int = 100_000
    heavy: int = 0
    """What one frame in 1,024 takes on top."""
    timeout: int = 200_000_000
    """After so long an attempt to connect over a cut path is given up, or at once: by the seed."""


class Spans:
    """When something was wrong: since when it is, and from when to when it was."""

    __slots__ = ("past", "since")

    def __init__(self) -> None:
        self.since: int | None = None
        self.past: list[tuple[int, int]] = []

    def begin(self, now: int) -> None:
        """It is wrong from now on."""
        if self.since is None:
            self.since = now

    def end(self, now: int) -> None:
        """It is right again."""
        if self.since is not None:
            self.past.append((self.since, now))
            self.since = None

    def before(self, when: int) -> int:
        """The latest time, not after `when`, at which nothing was wrong."""
        if self.since is not None and when >= self.since:
            return self.since - 1
        for start, stop in reversed(self.past):
            if start <= when < stop:
                return start - 1
            if when >= stop:
                break
        return when


class PathWorld(Protocol):
    """The world, as far as paths take it."""

    seed: int
    calm: bool


class Arriving(Protocol):
    """What was to take something in while the path to it was cut."""

    def arrive_at(self, when: int) -> None:
        """It comes then."""


class Path:
    """The way from one address to another."""

    __slots__ = ("_delays", "_stream", "clogged", "cuts", "jam", "lag", "name", "waiting", "world")

    def __init__(self, world: PathWorld, source: str, target: str, delays: Delays) -> None:
        self.world = world
        self.name = f"{source}>{target}"
        self.clogged = 0
        """Until then nothing that is sent from now on arrives."""
        self.lag = 0
        """What each frame takes on top; schedulers set it."""
        self.jam = 0
        """The mean of what each frame takes on top, exponentially distributed."""
        self.cuts = Spans()
        self.waiting: list[Arriving] = []
        """Ends that something was to arrive at while the path was cut: one entry for each."""
        self._delays = delays
        self._stream = Stream(world.seed, self.name, "delays")

    @property
    def cut(self) -> bool:
        """Nothing gets through now."""
        return self.cuts.since is not None

    def delay(self) -> int:
        """How long the next frame takes."""
        delays = self._delays
        span = delays.least + self.lag + self._stream.tail(delays.mean)
        if self.jam:
            span += self._stream.tail(self.jam)
        if delays.heavy and not self._stream.draw() & 1023:
            heavy = self._stream.tail(delays.heavy)
            span += 0 if self.world.calm else heavy
        return span

    def draw(self) -> int:
        """64 bits of the path's own."""
        return self._stream.draw()
