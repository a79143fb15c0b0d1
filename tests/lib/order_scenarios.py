"""What seeds stand for over ORDER: a group whose members come from one host and from others, so that its order goes over and back.

`python -m tests.lib.order_scenarios SEED ...` runs some.
"""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Scenario
from orcalike.simulator.simulation import Run
from tests.lib.command_lines import ask_seeds

MEMORY = ("slots=16,lane=131072", "slots=64,lane=4096", "slots=1024,lane=524288")
"""Orders that are full soon, or over which packets go in parts, and one that is neither."""


def over_either(scenario: Scenario) -> Scenario:
    """The same, with most processes on one host.

    No machine ends on which others may run: of each process there the kernel tells that it has ended.
    """
    rng = Random(f"{scenario.seed} order")
    memory = rng.choice(MEMORY)

    def layer(match: re.Match[str]) -> str:
        return f"ORDER({','.join(filter(None, ((match[1] or '')[1:-1], memory)))})"

    return replace(
        scenario,
        stack=re.sub(r"TOTAL(\([^)]*\))?", layer, scenario.stack),
        hosts=draw_hosts(rng, scenario.size),
        events=tuple(
            replace(event, way="") if event.way == "machine" else event for event in scenario.events
        ),
    )


def draw_hosts(rng: Random, size: int) -> tuple[int, ...]:
    """All on one host, all but one or two, or any on two."""
    kind = rng.choice(["one", "one else", "one else", "two else", "two"])
    if kind == "two":
        return tuple(rng.randrange(2) for _ in range(size))
    away = {"one": 0, "one else": 1, "two else": 2}[kind]
    chosen = rng.sample(range(size), min(away, size - 1))
    return tuple(1 + chosen.index(number) if number in chosen else 0 for number in range(size))


def draw_over_either(seed: int) -> Scenario:
    """What a seed stands for, with its faults."""
    return over_either(draw(seed))


if __name__ == "__main__":
    for seed in ask_seeds("tests.lib.order_scenarios", __doc__):
        print(f"seed {seed}: {Run(draw_over_either(seed)).run().steps} steps")
