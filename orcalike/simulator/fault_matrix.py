"""Cells: each step of the protocol, in each role, with each fault (G5).

The simulator lists them by name, so how many of them were tried is a number. A cell counts only
when its fault really happened at its step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from orcalike.simulator.scenario import MS, Event, Scenario
from orcalike.simulator.simulation import Result, Run

ROLES: dict[str, str] = {
    **dict.fromkeys(("W1", "W2"), "P"),
    **dict.fromkeys(("W3", "W4", "W5", "W9", "W10"), "S"),
    **dict.fromkeys(("W6", "W7", "W8"), "AP"),
    **dict.fromkeys(("W11", "W12"), "SPA"),
    "V1": "SA",
    **dict.fromkeys(("V2", "V4", "V5", "V6", "V7", "V8"), "C"),
    "V3": "A",
    "V9": "SA",
    **dict.fromkeys(("J1", "J2"), "J"),
    "L1": "SA",
}
"""Which process passes a step: S the sequencer, P a sender that waits, A any other member, C the leader of a
change of view, J a joiner."""

DETECTION = 100 * MS
"""D in cells."""

FAULTS: dict[str, Event] = {
    "kill": Event("crash", keep=99),
    "kill before it sends": Event("crash", keep=0),
    "kill after one frame": Event("crash", keep=1),
    "stop 0.5 D": Event("pause", span=DETECTION // 2),
    "stop 1.5 D": Event("pause", span=DETECTION * 3 // 2),
    "stop 10 D": Event("pause", span=DETECTION * 10),
    "cut off": Event("isolate", span=DETECTION * 3),
    "receives from none": Event("isolate", span=DETECTION * 3, way="in"),
    "reaches none": Event("isolate", span=DETECTION * 3, way="out"),
    "slow": Event("slow", span=DETECTION * 3, count=MS),
}
"""The faults, as events without a time."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one step of one role."""

    step: str
    role: str
    fault: str

    def __str__(self) -> str:
        return f"{self.step} of {self.role}: {self.fault}"


def cells() -> Iterator[Cell]:
    """All cells that apply."""
    for step, roles in ROLES.items():
        for role in roles:
            for fault in FAULTS:
                yield Cell(step, role, fault)


def scenario_of(cell: Cell, seed: int) -> Scenario:
    """A small busy group, with a change of view of each kind, in which that cell may happen."""
    rng = Random(f"{seed} {cell}")
    size, safety = 5, 20 * DETECTION
    degree = rng.choice([1, 1, 2])
    events = [Event("join", rng.randrange(MS), str(number)) for number in range(1, size - 1)]
    events.append(Event("join", 8 * DETECTION, str(size - 1)))
    events += [
        Event("cast", rng.randrange(safety), str(rng.randrange(size)), degree=degree)
        for _ in range(60)
    ]
    if cell.role == "P":  # one that has more under way when the first comes back
        events += [
            Event("cast", safety * tenth // 10, "next", count=5, degree=degree)
            for tenth in range(1, 10)
        ]
    change = 4 * DETECTION + rng.randrange(DETECTION)
    if cell.step.startswith("L"):
        events.append(Event("leave", change, "sequencer" if cell.role == "S" else "youngest"))
    elif cell.step.startswith("V"):
        events.append(
            Event(rng.choice(["crash", "leave"]), change, rng.choice(["least", "youngest"]))
        )
        events.append(Event("cast", change, "next", count=5, degree=degree))
    fault = FAULTS[cell.fault]
    nth = rng.choice([1, 1, 2, 3])
    after = 0 if cell.step.startswith("J") else 2 * DETECTION
    events.append(
        Event(
            fault.do,
            after,
            cell.role,
            span=fault.span,
            count=fault.count,
            keep=fault.keep,
            way=fault.way,
            mark=cell.step,
            nth=nth,
        )
    )
    return Scenario(
        seed=seed,
        size=size,
        events=tuple(events),
        safety=safety,
        stack=rng.choice(["XFER:TOTAL:MBRSHIP:COM:sim", "PACK:XFER:TOTAL:MBRSHIP:COM:sim"]),
        witness=rng.random() < 0.3,
        detection=DETECTION,
        resets=True,
    )


def try_cell(
    cell: Cell, seeds: range, change: Callable[[Scenario], Scenario] = lambda scenario: scenario
) -> Result | None:
    """Run a cell until its fault happens, in scenarios with some `change`; None if it did not with any seed.

    Raises Violation if an invariant is broken.
    """
    for seed in seeds:
        result = Run(change(scenario_of(cell, seed))).run()
        if result.fired:
            return result
    return None
