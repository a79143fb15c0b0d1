"""The child process that gets the addresses of an MPI job's processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from orcalike.environments import exchange
from orcalike.environments.exchange import ByChild
from orcalike.environments.world import ByExchange, World

SELECT_MAX = 1024
"""So many descriptors `select` takes, from 0."""


@pytest.mark.usefixtures("many_files")
def test_a_program_with_many_open_files_gets_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pmix_client.py").write_text("print('job-7')")
    monkeypatch.setattr(exchange, "_HERE", tmp_path)
    world = World(launcher="mpiexec", rank=0, size=1, job="", meets=ByExchange("pmix"))
    with contextlib.ExitStack() as files:
        for _ in range(SELECT_MAX):
            files.enter_context(open(os.devnull))
        with ByChild(world, "pmix") as child:
            assert child.job() == "job-7"
