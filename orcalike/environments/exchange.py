"""Texts that go to all processes of an MPI job, by what its launcher brings for that.

A child process does it (`pmi_client`, `pmix_client`), so that a later `MPI_Init` in this one works. If MPI is
initialised already by mpi4py, that does it.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orcalike.environments.pmi_end import say_at_the_end
from orcalike.environments.world import World
from orcalike.errors import JoinFailed

SAY_AFTER = 10.0
"""Seconds of waiting after which the log says so."""

_HERE = Path(__file__).parent
_log = logging.getLogger("orcalike")


class ByChild:
    """An exchange by a child process, which ends with the block."""

    def __init__(self, world: World, protocol: str) -> None:
        self._world = world
        words, kept = [str(world.rank), str(world.size)], []
        if protocol == "pmi":
            kept = [int(os.environ["PMI_FD"])]
            words.insert(0, str(kept[0]))
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_HERE / f"{protocol}_client.py"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=kept,
            text=True,
        )
        if kept:
            say_at_the_end(kept[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self._child.kill()
        self._child.communicate()

    def job(self) -> str:
        """The job's identity; raises JoinFailed if the launcher does not answer."""
        return self._next()

    def all(self, text: str) -> list[str]:
        """The texts of all processes, by rank; waits for them. Raises JoinFailed."""
        assert self._child.stdin is not None
        try:
            print(text, file=self._child.stdin, flush=True)
        except BrokenPipeError:
            raise self._failed() from None
        texts = self._next().split("\t")
        if len(texts) != self._world.size:
            raise JoinFailed(f"{self._world.launcher} gave {len(texts)} addresses")
        return texts

    def _next(self) -> str:
        assert self._child.stdout is not None
        answer = select.poll()
        answer.register(self._child.stdout, select.POLLIN)
        while not answer.poll(SAY_AFTER * 1000):
            _log.warning(
                "join the group waits: not all %d processes that %s has started are there yet",
                *(self._world.size, self._world.launcher),
            )
        line = self._child.stdout.readline()
        if not line.endswith("\n"):
            raise self._failed()
        return line[:-1]

    def _failed(self) -> JoinFailed:
        _, errors = self._child.communicate()
        return JoinFailed(
            f"the other processes that {self._world.launcher} has started cannot be found: "
            f"{errors.strip() or f'exit code {self._child.returncode}'}"
        )


class ByMpi4py:
    """An exchange by MPI itself, which is initialised already."""

    def __init__(self, mpi: Any) -> None:
        self._world = mpi.COMM_WORLD

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def job(self) -> str:
        """The job's identity: rank 0 draws it."""
        return self.all(secrets.token_hex(8))[0]

    def all(self, text: str) -> list[str]:
        """The texts of all processes, by rank; waits for them."""
        texts: list[str] = self._world.allgather(text)
        return texts


def exchange(world: World, protocol: str) -> ByChild | ByMpi4py:
    """A way to exchange texts; all processes of the job must take it."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        return ByMpi4py(mpi)
    return ByChild(world, protocol)
