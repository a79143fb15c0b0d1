"""G32: members that signals hit, whose handlers raise, while they call everything there is.

python -m tests.campaign.signalled --seed 101 shows one run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from orcalike.history_check.check import check_histories
from orcalike.history_check.records import load
from tests.campaign.bars import Bar, Figure, Scale
from tests.campaign.models import model_of
from tests.lib.processes import Process
from tests.lib.programs import OVER_SOCKETS

PROGRAM = Path(__file__).parents[1] / "cluster" / "programs" / "signalled.py"
HITS = 25
"""Of each kind of call, at each member, in a run."""
DEADLINE = 300.0
"""Seconds for a run; each member watches itself for less."""


def run(seed: int, members: int, history: bool) -> tuple[int, list[str]]:
    """One run, over one order or the other: how many handlers have raised, and what was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="orcalike-"))
    environment = os.environ | {
        "MEETINGS": str(folder),
        "ORCALIKE_CHECK": "order",
        "PYTHONHASHSEED": "0",
        "SIGNALLED_DEADLINE": "60",
    }
    if seed // 2 % 2:
        environment["STACK"] = OVER_SOCKETS
    if history:
        environment["ORCALIKE_HISTORY"] = str(folder / "history")
    processes: list[Process] = []
    for number in range(members):
        while number and not (folder / "maker").exists() and processes[0].runs:
            time.sleep(0.01)
        how = ["join" if number else "make", f"unix:{folder}/maker", str(members)]
        command = [sys.executable, str(PROGRAM), *how, "--hits", str(HITS)]
        command += ["--seed", str(1000 * seed + number), *(["--early"] if seed % 2 else [])]
        processes.append(Process(command, folder / f"stderr{number}", env=environment))
    printed = []
    for process in processes:
        try:
            printed.append(process.process.communicate(timeout=DEADLINE)[0])
        except subprocess.TimeoutExpired:
            process.process.kill()
            printed.append(process.process.communicate()[0])
    codes = [process.process.returncode for process in processes]
    facts: list[dict[str, Any]] = [
        json.loads(line) for each in printed for line in each.splitlines()
    ]
    ends = [fact for fact in facts if "digest" in fact]
    wrong = [f"{folder}, seed {seed}: exit codes {codes}"] if any(codes) else []
    if not wrong and len({json.dumps([end["digest"], end["states"]]) for end in ends}) != 1:
        wrong.append(f"{folder}, seed {seed}: the members differ")
    if history and not wrong:
        verdict = check_histories(load(folder / "history"), 0, model_of)
        wrong += [f"{folder}, seed {seed}: {each}" for each in verdict.violations[:3]]
    if not wrong:
        shutil.rmtree(folder)
    return sum(end["hits"] for end in ends), wrong


def measure_signals(scale: Scale) -> list[Figure]:
    """10,000 handlers that raise, over all calls; every third run has three members."""
    wanted, hits, seed = scale.of(10_000, 50_000), 0, 3_200
    wrong: list[str] = []
    while hits < wanted and len(wrong) < 10:
        came, troubles = run(seed, 3 if seed % 3 == 0 else 2, seed % 4 == 0)
        hits, seed = hits + came, seed + 1
        wrong += troubles
    text = f"{hits} handlers raised in {seed - 3_200} runs, {len(wrong)} wrong"
    return [Figure("G32", text, not wrong, wrong)]


BARS = [Bar(("G32",), {"G32": "10,000 signals over all calls, 0 broken members"}, measure_signals)]


def main() -> None:
    """One run; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="tests.campaign.signalled", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--history", action="store_true")
    options = parser.parse_args()
    hits, wrong = run(options.seed, options.members, options.history)
    print(f"{hits} handlers raised", *wrong, sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
