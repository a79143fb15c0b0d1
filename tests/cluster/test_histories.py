"""Real processes whose histories are checked: the campaign's harness, without faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_run_without_faults_is_found_to_be_right() -> None:
    options = ["--cycles", "2", "--n", "3", "--between", "0.3", "--seed", "5", "--fault", "none"]
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
    seed, faults, messages, acknowledged, lost, wrong, _ = run.split(maxsplit=6)
    assert (seed, faults, lost, wrong) == ("5", "2", "0", "0")
    assert int(messages) > int(acknowledged) > 100
    assert summary.startswith("2 cycles, 0 runs wrong")
