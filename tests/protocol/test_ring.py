"""The order in shared memory under the simulator: the product's own C, switched at each atomic step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.mutants import Mutant, load
from tests.lib.ring_programs import compiled, compiler, run, with_mutant

SEEDS = 40_000
"""In which each mutant is found; most are in the first hundred."""

LATE = {
    "ring-disarm-of-any-incarnation": 129_600,
    "ring-interest-of-any-incarnation": 82_500,
}
"""Seeds before which these are not found, so that the search begins there."""

MUTANTS = [mutant for mutant in load("ring-") if not mutant.equivalent]

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("simulator", tmp_path_factory.mktemp("ring"), "-g0")


def test_members_agree_under_all_faults(simulator: Path, request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("--seed")
    facts = run(simulator, 1 if seed else SEEDS, seed or 1, "show")
    assert facts["violation"] == "", f"--seed {facts['seed']}: {facts['stderr']}"
    assert facts["code"] == 0
    if not seed:  # what is drawn is there
        for each in ("kills", "stops", "out", "joins", "reused", "views", "fulls", "reads"):
            assert facts[each] > SEEDS / 10, each


def test_the_same_seed_is_the_same_run(simulator: Path) -> None:
    assert run(simulator, 200, 71) == run(simulator, 200, 71)
    assert run(simulator, 200, 71) != run(simulator, 200, 72)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_simulator_finds_a_mutant(mutant: Mutant, tmp_path: Path) -> None:
    headers = with_mutant(mutant.name, tmp_path)
    program = compiled("simulator", tmp_path, "-w", "-g0", headers=headers, optimize="-O0")
    first = LATE.get(mutant.name, 1)
    facts = run(program, SEEDS, first)
    assert facts["code"] == 1, f"{mutant.breaks}: {facts}"
    assert facts["violation"]
