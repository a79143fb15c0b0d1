"""`options(stable=k)` in simulated groups of whole runtimes (`sim_stable`; H66, H68)."""

from __future__ import annotations

import pytest

from tests.protocol.sim_stable import StableSimulation


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize("block", range(2))
def test_done_means_applied_by_k(block: int) -> None:
    """The campaign runs more seeds (G34)."""
    done = 0
    for seed in range(20 * block, 20 * block + 20):
        simulation = StableSimulation(seed)
        simulation.run()
        done += len(simulation.seen)
    assert done > 20
