"""The core with a detail left out: a group in the simulator breaks an invariant for it (G26).

Those in compiled modules are tried by `make mutants`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.mutants import Mutant, load
from tests.campaign.mutants.campaign import Verdict, try_in_place
from tests.campaign.mutants.planted import is_plantable
from tests.protocol.test_schedules import SCHEDULES

OF_THE_CORE = [mutant for mutant in load() if mutant.violates]
PLANTABLE = [mutant for mutant in OF_THE_CORE if is_plantable(mutant)]
FILES = Path(__file__).parent.glob("testdata/mutations/*.json")


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    """Of all of them, by name: one process imports what their tests have in common."""
    return try_in_place(PLANTABLE)


@pytest.mark.parametrize("mutant", PLANTABLE, ids=lambda mutant: mutant.name)
def test_a_detail_that_is_left_out_is_noticed(mutant: Mutant, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[mutant.name]
    assert verdict.word == "caught", verdict.detail


def test_each_scenario_that_shows_a_mutant_is_used_for_one() -> None:
    named = {test.rpartition("[")[2].rstrip("]") for each in OF_THE_CORE for test in each.tests}
    assert named >= {path.stem for path in FILES} | {make.__name__ for make in SCHEDULES}
    assert len(OF_THE_CORE) >= 38
