"""orcalike inside an MPI program: both are used by the same ranks at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lib.processes import DEADLINE

if TYPE_CHECKING:
    from tests.lib.programs import Programs

MPIEXEC = Path(sys.executable).with_name("mpiexec")

pytestmark = [
    pytest.mark.skipif(not MPIEXEC.exists(), reason="no MPI is installed here: make guests"),
]
pytest.importorskip("mpi4py", reason="mpi4py is not installed: make guests")


def test_ranks_meet_by_one_broadcast(programs: Programs) -> None:
    """Their thread and MPI's calls do not disturb each other."""
    ended = subprocess.run(
        [str(MPIEXEC), "-n", "3", sys.executable, programs.path("mpi_guests.py")],
        check=False,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=os.environ | {"PYTHONHASHSEED": "0", "MEETINGS": str(programs.directory)},
    )
    assert ended.returncode == 0, ended.stderr
    facts = [json.loads(line) for line in ended.stdout.splitlines()]
    assert sorted(fact["rank"] for fact in facts) == [0, 1, 2]
    assert {(fact["size"], fact["done"]) for fact in facts} == {(3, 15)}
