"""Random numbers for a simulated world: a stream of its own for each thing that draws.

What one thing draws does not depend on what others draw: where a fault is taken out of a schedule,
the rest goes on as before, which shrinking needs.
"""

from __future__ import annotations

from hashlib import blake2b
from math import log

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


class Stream:
    """splitmix64 over (seed, entity, purpose, counter)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, entity: str, purpose: str) -> None:
        key = f"{seed}/{entity}/{purpose}".encode()
        self._state = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")

    def draw(self) -> int:
        """The next 64 bits."""
        self._state = state = (self._state + _GAMMA) & _MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def random(self) -> float:
        """At least 0 and less than 1."""
        return (self.draw() >> 11) / (1 << 53)

    def below(self, bound: int) -> int:
        """At least 0 and less than `bound`."""
        return self.draw() % bound

    def tail(self, mean: int) -> int:
        """Exponentially distributed, with this mean."""
        return int(-mean * log(1 - self.random()))
