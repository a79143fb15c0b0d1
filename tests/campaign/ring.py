"""G40, G41: the order in shared memory, by its simulator, and between processes that are killed within a write.

The simulator has the product's C, switched, killed and stopped at each atomic step; `killstep` goes on by one
machine instruction at a time (tests/lib/ring).
"""

from __future__ import annotations

import secrets
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.campaign.bars import Bar, Figure, Scale
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
    total = {key: sum(each[key] for each in facts) for key in ("seeds", "steps", "kills", "joins")}
    text = ", ".join(f"{value} {key}" for key, value in total.items()) + f", {len(notes)} broken"
    return [Figure("G40", text, not notes and total["seeds"] == part * WORKERS, notes)]


def measure_processes(scale: Scale) -> list[Figure]:
    """G41: at each instruction of a write, killed, and stopped until it is overrun; and under load."""
    every = max(1, round(1 / scale.times))
    with tempfile.TemporaryDirectory(prefix="orcalike-ring-") as folder:
        steps, load = compiled("killstep", Path(folder)), compiled("killload", Path(folder))
        facts: dict[str, dict[str, Any]] = {
            "kill": run(steps, "kill", every, timeout=SECONDS_MAX),
            "stop": run(steps, "stop", every, timeout=SECONDS_MAX),
            "stop, not overrun": run(steps, "stop", every, 3, timeout=SECONDS_MAX),
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


BARS = [
    Bar(("G40",), {"G40": "100,000 seeds of the ring, 0 broken"}, measure_simulator),
    Bar(
        ("G41",),
        {"G41": "each instruction of a write, 1,000 kills: 0 lost, blocked, late"},
        measure_processes,
    ),
]
