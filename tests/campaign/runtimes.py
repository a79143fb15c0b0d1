"""G34: whole runtimes in the simulator, beside the reference model, and groups over STABLE; every other seed in memory."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.campaign.bars import Bar, Figure, Scale
from tests.lib.orders import ORDERS, over
from tests.protocol import sim_runtime, sim_stability
from tests.protocol.sim_stable import StableSimulation

WORKERS = 2
CHUNK = 20


def run_stable(seed: int) -> None:
    """Invocations that want k members."""
    StableSimulation(seed).run()


KINDS: dict[str, tuple[Callable[[int], object], int, int]] = {
    "runtimes": (sim_runtime.run, 2_000, 20_000),
    "STABLE": (sim_stability.run, 600, 6_000),
    "options(stable=)": (run_stable, 300, 3_000),
}
"""By kind: what runs one seed, and how many seeds there are in each tier."""


def broken_of(kind: str, first: int) -> list[str]:
    """Which seeds of a chunk went wrong."""
    logging.getLogger("orcalike").setLevel(logging.CRITICAL)
    run, _, _ = KINDS[kind]
    broken = []
    for seed in range(first, first + CHUNK):
        try:
            with over(ORDERS[seed % len(ORDERS)]):
                run(seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other seeds run
            broken.append(f"{kind}, seed {seed}: {type(error).__name__}: {error}")
    return broken


def measure_runtimes(scale: Scale) -> list[Figure]:
    """Seeds that no run had before."""
    begin = secrets.randbelow(1 << 40)
    texts, notes = [], []
    with ProcessPoolExecutor(WORKERS) as pool:
        for kind, (_, one, two) in KINDS.items():
            firsts = range(begin, begin + scale.of(one, two), CHUNK)
            notes += [
                line
                for lines in pool.map(broken_of, [kind] * len(firsts), firsts)
                for line in lines
            ]
            texts.append(f"{len(firsts) * CHUNK} of {kind}")
    text = f"{', '.join(texts)}; seeds from {begin} on, {len(notes)} broken"
    return [Figure("G34", text, not notes, notes)]


BARS = [Bar(("G34",), {"G34": "2,900 seeds of whole runtimes, 0 broken"}, measure_runtimes)]
