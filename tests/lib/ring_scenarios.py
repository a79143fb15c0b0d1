"""What seeds stand for where the order is in shared memory, so that all processes are on one host.

`python -m tests.lib.ring_scenarios SEED ...` runs some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from orcalike.simulator.fault_matrix import FAULTS, Cell, cells
from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Scenario
from orcalike.simulator.simulation import Run
from tests.lib.command_lines import ask_seeds

LAYERS = (
    "RING(slots=16,lane=131072)",
    "RING(slots=64,lane=131072)",
    "RING(slots=1024,lane=524288)",
)
"""Orders that are full soon, and one that is not."""
SMALL_LANES = "RING(slots=64,lane=4096)"
"""One over which many packets go in parts."""

OF_A_SEQUENCER = ("W2", "W4", "W5", "W6", "W7", "W8", "W9", "W10")
"""Steps of a write that is numbered elsewhere, held, and then accepted."""

STACK = "XFER:RING(slots=64,lane=65536):MBRSHIP:COM:sim"
"""Without PACK, so that each cast is a packet."""


def over_ring(scenario: Scenario) -> Scenario:
    """The same over shared memory: with a witness only if it keeps the state, since it has nothing to order.

    No machine ends, for it would end with all of them: of each process the kernel tells that it has ended.
    """
    layer = SMALL_LANES if scenario.seed % 7 == 2 else LAYERS[scenario.seed % len(LAYERS)]
    stack = re.sub(r"TOTAL(\([^)]*\))?", layer, scenario.stack)
    return replace(
        scenario,
        stack=stack,
        hosts=(0,) * scenario.size,
        events=tuple(
            replace(event, way="") if event.way == "machine" else event for event in scenario.events
        ),
        witness=scenario.witness and scenario.keeps,
    )


def cells_over_ring() -> Iterator[Cell]:
    """All cells that apply: each member orders what it casts, so no step is a sequencer's, and none waits there for one."""
    for cell in cells():
        if cell.step not in OF_A_SEQUENCER and cell.role != "P":
            yield cell
    for step, role in (("W1", "S"), ("W1", "A"), ("W3", "A")):
        for fault in FAULTS:
            yield Cell(step, role, fault)


def draw_over_ring(seed: int) -> Scenario:
    """What a seed stands for, with its faults."""
    return over_ring(draw(seed))


if __name__ == "__main__":
    for seed in ask_seeds("tests.lib.ring_scenarios", __doc__):
        print(f"seed {seed}: {Run(draw_over_ring(seed)).run().steps} steps")
