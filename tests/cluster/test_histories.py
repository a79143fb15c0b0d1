"""Real processes whose histories are checked: the campaign's harness, without faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", ["5", "6"], ids=["a sequencer", "shared memory"])
def test_a_run_without_faults_is_found_to_be_right(seed: str) -> None:
    options = ["--cycles", "2", "--n", "3", "--between", "0.3", "--seed", seed, "--fault", "none"]
    options += ["--read-interval", "0.01"]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.campaign.real", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    _, run, summary = ended.stdout.splitlines()
    of, faults, messages, acknowledged, lost, wrong, _ = run.split(maxsplit=6)
    assert (of, faults, lost, wrong) == (seed, "2", "0", "0")
    assert int(messages) > int(acknowledged) > 100
    assert summary.startswith("2 cycles, 0 runs wrong")
