"""G40, G41, G44: the order in shared memory, by its simulator, between processes that are killed within a write, and damaged.

The simulator has the product's C, switched, killed and stopped at each atomic step; `killstep` goes on by one
machine instruction at a time (tests/lib/ring).
"""

from __future__ import annotations

import secrets
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from orcalike.simulator.checkers.facts import Violation
from tests.campaign.bars import Bar, Figure, Scale
from tests.lib.damaged_memory import DamagedRun
from tests.lib.ring_programs import compiled, run

WORKERS = 2
SECONDS_MAX = 4 * 3600.0
WRONG = ("lost", "twice", "differ", "broken", "blocked", "late", "fault")


def measure_simulator(scale: Scale) -> list[Figure]:
    """G40: other seeds each time."""
    part = scale.of(100_000, 5_000_000) // WORKERS or 1
    begin = secrets.randbelow(1 << 40)
    with tempfile.TemporaryDirectory(prefix="orcalike-ring-") as folder:
        program = compiled("simulator", Path(folder))
        with ThreadPoolExecutor(WORKERS) as pool:
            runs = [
                pool.submit(run, program, part, begin + i * part, "show", timeout=SECONDS_MAX)
                for i in range(WORKERS)
            ]
            facts = [each.result() for each in runs]
    notes = [f"seed {each['seed']}: {each['violation']}" for each in facts if each["violation"]]
    total = {
        key: sum(each[key] for each in facts)
        for key in ("seeds", "steps", "kills", "joins", "views")
    }
    text = ", ".join(f"{value} {key}" for key, value in total.items()) + f", {len(notes)} broken"
    return [Figure("G40", text, not notes and total["seeds"] == part * WORKERS, notes)]


def measure_processes(scale: Scale) -> list[Figure]:
    """G41: at each instruction of a write and of a change of view, killed, and stopped until it is overrun; and under load."""
    every = max(1, round(1 / scale.times))
    with tempfile.TemporaryDirectory(prefix="orcalike-ring-") as folder:
        steps, load = compiled("killstep", Path(folder)), compiled("killload", Path(folder))
        facts: dict[str, dict[str, Any]] = {
            "kill": run(steps, "kill", every, timeout=SECONDS_MAX),
            "stop": run(steps, "stop", every, timeout=SECONDS_MAX),
            "stop, not overrun": run(steps, "stop", every, 3, timeout=SECONDS_MAX),
            "stop, row taken again": run(steps, "stop", every, 0, timeout=SECONDS_MAX),
            "load": run(
                load, scale.of(1_000, 10_000), secrets.randbelow(1 << 30), timeout=SECONDS_MAX
            ),
        }
    notes = [
        f"{name}: {key} {each[key]}"
        for name, each in facts.items()
        for key in (*WRONG, "code")
        if each.get(key)
    ]
    cycles = sum(each.get("cycles", 0) for each in facts.values())
    text = (
        f"{cycles} instructions, {facts['load']['kills']} kills, {facts['load']['packets']} packets"
    )
    return [Figure("G41", f"{text}, {len(notes)} wrong", not notes, notes)]


def damaged_seeds(seeds: list[int]) -> tuple[int, int, list[str]]:
    """So many members ended by an error that names the damage, in so many runs; and what was broken."""
    ended = runs = 0
    broken = []
    for seed in seeds:
        run = DamagedRun(seed)
        try:
            run.run()
        except Violation as violation:
            broken.append(f"python -m tests.lib.damaged_memory {seed}: {run.damaged}: {violation}")
        ended += len(run.errors)
        runs += bool(run.errors)
    return ended, runs, broken


def measure_damage(scale: Scale) -> list[Figure]:
    """G44: a word of a running group's order is overwritten; others each time."""
    seeds = scale.of(5_000, 50_000)
    begin = secrets.randbelow(1 << 40)
    with ProcessPoolExecutor(WORKERS) as pool:
        parts = [
            pool.submit(damaged_seeds, [*range(begin + first, begin + seeds, WORKERS)])
            for first in range(WORKERS)
        ]
        found = [part.result() for part in parts]
    ended, runs = sum(each[0] for each in found), sum(each[1] for each in found)
    broken = [line for each in found for line in each[2]]
    text = f"{seeds} seeds, {ended} members ended in {runs} of them, {len(broken)} broken"
    return [Figure("G44", text, runs > 0 and not broken, broken)]


BARS = [
    Bar(("G40",), {"G40": "100,000 seeds of the ring, 0 broken"}, measure_simulator),
    Bar(
        ("G41",),
        {"G41": "each instruction of a write, 1,000 kills: 0 lost, blocked, late"},
        measure_processes,
    ),
    Bar(
        ("G44",),
        {"G44": "5,000 damaged words: each member goes on rightly or names one"},
        measure_damage,
    ),
]
