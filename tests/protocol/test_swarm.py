"""Groups from seeds without faults: joins, leaves and small windows (promises 1 to 5, 11, 15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orcalike.simulator.generator import draw
from orcalike.simulator.scenario import Scenario
from orcalike.simulator.simulation import Result, Run

CHUNK = 25
SEEDS = 100
CALM = ("join", "cast", "leave", "restart", "hold")


def calm(seed: int) -> Scenario:
    """What a seed stands for, without its faults, and without members that apply nothing for too long."""
    scenario = draw(seed)
    events = [
        event
        for event in scenario.events
        if event.do in CALM
        and not event.mark
        and (event.do != "hold" or 0 < 2 * event.span < scenario.slow)
    ]
    delays = replace(scenario.delays, heavy=0)
    return replace(scenario, events=tuple(events), delays=delays, beat_loss=0.0)


def in_calm(seed: int) -> Result:
    """Run it: no member has a reason to suspect another."""
    run = Run(calm(seed))
    result = run.run()
    assert not result.blocked
    expelled = [
        each.process
        for each in run.applications.values()
        if each.exited not in (None, "left", "the last member left")
    ]
    assert not expelled, f"seed {seed}: {expelled} went otherwise than by leaving"
    return result


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_swarm_keeps_the_promises(first: int, request: pytest.FixtureRequest) -> None:
    """`--seed N` runs seed N alone."""
    seed = request.config.getoption("--seed")
    if seed is not None:
        in_calm(seed)
        return
    delivered = sum(in_calm(each).delivered for each in range(first, first + CHUNK))
    assert delivered > 20 * CHUNK
