"""What a seed stands for: a group, its stack, and what happens to it (RELIABILITY, section 5d).

Each seed leaves features out as well as putting them in, and makes limits tiny: what only shows
without joins, or with a window of four packets, shows sooner so.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from orcalike.transport.drivers.sim import Delays

MS = 1_000_000
"""A millisecond, in ns."""


@dataclass(frozen=True, slots=True)
class Swarm:
    """How one run of the simulator is set up; all of it follows from the seed."""

    seed: int
    size: int
    """How many endpoints there are; the first makes the group."""
    witness: bool
    """The first is a witness."""
    stack: str
    delays: Delays
    casts: int
    """How many casts are tried, by whoever is in the group."""
    bodies: tuple[int, ...]
    """The sizes that bodies have."""
    span: int
    """All of it begins within so many ns."""
    together: bool
    """All join in the same instant."""
    leavers: tuple[int, ...]
    end_at_once: bool
    """In the end all who are left leave in the same instant."""
    stops: bool
    """A process ends when its member has left; else it lingers."""
    slow: tuple[int, ...]
    """Members that do not apply what they get for a while."""
    piece: int
    """How many events a piece of state holds: many small ones take many round trips."""

    @classmethod
    def draw(cls, seed: int) -> Swarm:
        """The swarm of a seed."""
        dice = Random(f"{seed} swarm")
        size = dice.choice([2, 2, 3, 3, 4, 5, 6, 7, 8, 9])
        packet = dice.choice([16, 64, 200, 1000])
        leaving = dice.choice([0.0, 0.2, 0.5, 0.9])
        return cls(
            seed=seed,
            size=size,
            witness=dice.random() < 0.5,
            stack=draw_stack(dice, packet),
            delays=Delays(
                least=dice.choice([1_000, 10_000, 200_000]),
                mean=dice.choice([1_000, 50_000, 400_000]),
                connect=dice.choice([1_000, 100_000]),
            ),
            casts=dice.choice([0, 20, 60, 120]),
            bodies=dice.choice([(0,), (8,), (0, 3, 3 * packet), (12, packet, 2 * packet)]),
            span=dice.choice([1, 5, 20]) * MS,
            together=dice.random() < 0.3,
            leavers=tuple(i for i in range(size) if dice.random() < leaving),
            end_at_once=dice.random() < 0.1,
            stops=dice.random() < 0.5,
            slow=tuple(i for i in range(size) if dice.random() < dice.choice([0.0, 0.3])),
            piece=dice.choice([1, 2, 8, 1000]),
        )

    def __str__(self) -> str:
        who = f"{self.size} members{', the first a witness' if self.witness else ''}"
        return f"seed {self.seed}: {who}; {self.casts} casts; {self.stack}"


def draw_stack(dice: Random, packet: int) -> str:
    """A stack with small windows, now and then without PACK, and with a layer that delays."""
    total = dice.choice(["TOTAL", "TOTAL(packets=4)", "TOTAL(packets=8)", "TOTAL(bytes=300)"])
    pack = dice.choice([f"PACK(size={packet}):", f"PACK(size={packet}):", ""])
    delay = dice.choice([f"DROP(delay={dice.randint(1, 50)}):", "", "", ""])
    where = dice.choice(["above", "below"])
    above = delay if where == "above" else ""
    below = delay if where == "below" else ""
    return f"{pack}XFER:{total}:{above}MBRSHIP:{below}COM:sim"
