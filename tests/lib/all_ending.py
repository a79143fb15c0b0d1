"""What seeds stand for where all members with replicas end at once, now and then, and a witness keeps the state.

`python -m tests.lib.all_ending SEED ...` runs some.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Event, Scenario
from orcalike.simulator.simulation import Run
from tests.lib.command_lines import ask_seeds
from tests.lib.ring_scenarios import over_ring


def draw_all_ending(seed: int) -> Scenario:
    """A seed's scenario on one host, in which all but the witness crash and come back; half of them over shared memory."""
    scenario = draw(seed)
    rng = Random(f"{seed} all end")
    size = max(scenario.size, 2)
    events = list(scenario.events)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at, apart = rng.randrange(scenario.safety), rng.choice([0, 0, scenario.detection])
        for number in range(1, size):
            crash = at + rng.randint(0, apart)
            events.append(Event("crash", crash, str(number)))
            back = crash + rng.randint(0, 2 * scenario.detection)
            events.append(Event("restart", back, str(number)))
            cast = Event("cast", back + rng.randint(0, scenario.detection), str(number), size=12)
            events.append(replace(cast, count=rng.randint(1, 9)))
    scenario = replace(
        scenario, size=size, witness=True, keeps=True, hosts=(0,) * size, events=tuple(events)
    )
    return over_ring(scenario) if seed % 2 else scenario


if __name__ == "__main__":
    for seed in ask_seeds("tests.lib.all_ending", __doc__):
        print(f"seed {seed}: {Run(draw_all_ending(seed)).run().steps} steps")
