"""The core with a detail taken out: a seed or a schedule notices (G26)."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from orcalike.simulator.scenario import Scenario
from tests.protocol.sabotage import SEEDS, SWITCHES, caught, caught_in
from tests.protocol.test_schedules import SCHEDULES

CORE = Path(__file__).parents[2] / "transport"
QUICK = [name for name, seeds in SEEDS.items() if max(seeds) < 70]
"""What few seeds show; the campaign tries them all."""

FOUND = Path(__file__).parent / "testdata"
FILES = {path.stem: path for path in sorted(FOUND.glob("sabotage/*.json"))} | {
    "decide-within-lease": FOUND / "safety" / "oldest_alone_then_dead.json",
    "gap-not-closed": FOUND / "liveness" / "link_broken_at_one_end.json",
    "tentative-outlives-state": FOUND / "safety" / "tentative_outlives_the_state.json",
}
DIRECTED = {switch: make() for make, (switch, _) in SCHEDULES.items()} | {
    switch: Scenario.from_json(path.read_text()) for switch, path in FILES.items()
}


def found(name: str, most: int) -> tuple[int, str] | None:
    """By the schedule made for it, by the seeds that are known, or by some others."""
    if name in DIRECTED and (by_hand := caught_in(name, [0], lambda _: DIRECTED[name])):
        return by_hand
    return caught(name, chain(SWITCHES[name].seeds, range(most)))


@pytest.mark.parametrize("name", QUICK)
def test_sabotage_is_noticed(name: str) -> None:
    assert found(name, 200) is not None


@pytest.mark.parametrize("name", FILES)
def test_a_scenario_that_was_found_notices_the_detail_that_mends_it(name: str) -> None:
    assert caught_in(name, [0], lambda _: DIRECTED[name]) is not None


def test_every_switch_is_in_the_core_and_in_the_list() -> None:
    sources = [*CORE.rglob("*.py"), *CORE.rglob("*.pyx")]
    text = "\n".join(source.read_text() for source in sources)
    assert set(re.findall(r'is_broken\("([\w-]+)"\)', text)) == set(SWITCHES)
    assert len(SWITCHES) >= 25


def test_every_switch_says_what_shows_it() -> None:
    assert set(SWITCHES) == {*SEEDS, *DIRECTED}
