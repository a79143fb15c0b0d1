"""The core with a detail taken out: somebody notices (RELIABILITY, G26)."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from orcalike.testing.sabotage import SEEDS, SWITCHES, caught, caught_in
from tests.protocol.test_schedules import SCHEDULES

CORE = Path(__file__).parents[2] / "transport"
QUICK = [name for name, seeds in SEEDS.items() if max(seeds) < 70]
"""What few seeds show; the campaign tries them all."""

DIRECTED = {switch: make() for make, (switch, _) in SCHEDULES.items()}


def found(name: str, most: int) -> tuple[int, str] | None:
    """By the schedule made for it, by the seeds that are known, or by some others."""
    if name in DIRECTED and (by_hand := caught_in(name, [0], lambda _: DIRECTED[name])):
        return by_hand
    return caught(name, chain(SWITCHES[name].seeds, range(most)))


@pytest.mark.parametrize("name", QUICK)
def test_sabotage_is_noticed(name: str) -> None:
    assert found(name, 200) is not None


def test_every_switch_is_in_the_core_and_in_the_list() -> None:
    sources = [*CORE.rglob("*.py"), *CORE.rglob("*.pyx")]
    text = "\n".join(source.read_text() for source in sources)
    assert set(re.findall(r'is_broken\("([\w-]+)"\)', text)) == set(SWITCHES)
    assert len(SWITCHES) >= 25


def test_every_switch_says_what_shows_it() -> None:
    assert set(SWITCHES) == {*SEEDS, *DIRECTED}
