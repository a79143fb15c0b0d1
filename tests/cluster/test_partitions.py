"""Partitions between hosts on a network that loses frames: never two primaries (the campaign's G37 has more)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.members import Settings
from tests.campaign.partitions import HOSTS, SETTLED_WITHIN, torment
from tests.lib.lossy_switch import lossy_switch

SETTINGS = Settings(degree=1, interval=0.05, read_interval=0.02, join_within=SETTLED_WITHIN)


@pytest.mark.parametrize(("loss", "seed"), [(0.05, 1), (0.2, 2)])
def test_cuts_make_no_two_primaries(tmp_path: Path, loss: float, seed: int) -> None:
    with lossy_switch(HOSTS, seed, loss) as switch:
        wrong, delivered = torment(tmp_path, switch, 2, seed, SETTINGS)
    assert wrong == []
    assert delivered
