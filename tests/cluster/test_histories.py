"""Real processes whose histories are checked: the campaign's harness, without faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


ORDERS = pytest.mark.parametrize("seed", ["5", "6"], ids=["a sequencer", "shared memory"])


def run(seed: str, *options: str) -> list[str]:
    """A run of three members that must be right: of which, how many faults, messages, acknowledged, lost, wrong."""
    options = ("--n", "3", "--between", "0.3", "--seed", seed, *options)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.campaign.real", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    _, row, summary = ended.stdout.splitlines()
    assert summary.startswith("2 cycles, 0 runs wrong")
    return row.split(maxsplit=6)[:6]


@ORDERS
def test_a_run_without_faults_is_found_to_be_right(seed: str) -> None:
    options = ["--cycles", "2", "--fault", "none", "--read-interval", "0.01"]
    of, faults, messages, acknowledged, lost, wrong = run(seed, *options)
    assert (of, faults, lost, wrong) == (seed, "2", "0", "0")
    assert int(messages) > int(acknowledged) > 100


@ORDERS
def test_what_callers_see_is_right_by_the_short_ways_too(seed: str) -> None:
    """No history is kept, which would make a task of each call; a member is stopped, and one is killed."""
    faults_of = ["--fault", "stop-random-0.5", "--fault", "kill-random"]
    options = ["--called", "--cycles", "2", "--r", "1", *faults_of]
    of, faults, _, acknowledged, lost, wrong = run(seed, *options)
    assert (of, faults, lost, wrong) == (seed, "2", "0", "0")
    assert int(acknowledged) > 1_000
