"""Processes are killed while they write: what was acknowledged stays, once (G7 in its short form)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.processes import torment

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("size", "degree", "fault", "cycles", "seed"),
    [  # with even seeds the order is in shared memory
        (5, 2, "kill-sequencer+1", 2, 1),
        (5, 2, "kill-sequencer+1", 2, 4),
        (3, 1, "kill-random", 4, 2),
    ],
)
def test_nothing_acknowledged_is_lost(
    size: int, degree: int, fault: str, cycles: int, seed: int
) -> None:
    options = {
        "--n": size,
        "--r": degree,
        "--fault": fault,
        "--cycles": cycles,
        "--per-run": cycles,
        "--seed": seed,
        "--between": 0.2,
        "--rate": 500,
        "--read-interval": 0.01,
        "--black-box": 3_000,
    }
    arguments = [str(part) for option in options.items() for part in option]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.campaign.real", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{cycles} cycles, 0 runs wrong" in ended.stdout


def test_a_campaign_runs_as_it_is_called() -> None:
    """Its bars take the same runs, with what they do not name as the command line has it."""
    found = torment(1, 2, n=2, r=1, fault=["kill-random"], between=0.1)
    assert (found.cycles, found.wrong) == (1, [])
    assert found.acknowledged > 0
