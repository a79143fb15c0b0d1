"""`orcalike run --via mpi` with the `mpiexec` of both MPIs, over hosts that each has a real sshd."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from tests.lib.engine_program import make_key
from tests.lib.mpi import Mpi
from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import SshHosts

COUNTS = """
import os, sys
import orcalike as orca
from orcalike.objects import Counter
with orca.join() as group:
    counter = group.share(Counter, "n")
    counter.add(1)
    group.barrier()
    of_mpi = [name for name in os.environ if name.startswith(("PMI", "OMPI", "PRTE", "HYDI"))]
    print(counter.get(), sys.stdin.read() if group.rank == 0 else "-", of_mpi, flush=True)
    group.barrier()
sys.exit(3 if group.rank == 2 else 0)
"""

STAYS = """
import signal
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture(params=["mpich", "openmpi"])
def environment(two: SshHosts, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """The variables of a user with a key and one of the MPIs, whose processes are started by ssh."""
    keys = two.directory / "keys"
    keys.mkdir()
    return Mpi(request.param, two.directory).over(two.shell()) | make_key(keys)


@contextmanager
def by_mpi(
    two: SshHosts, program: str, hosts: str, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """A run whose agents `mpiexec` starts at these hosts; in the end nothing is left of it."""
    path = two.directory / "prog.py"
    path.write_text(program)
    with two.started("--via", "mpi", "-H", hosts, str(path), env=environment) as run:
        yield run
    until(lambda: two.rest() == [], f"the end of {two.rest()}", pause=0.1)


def test_a_run_by_agents_that_mpiexec_has_started(
    two: SshHosts, environment: Mapping[str, str]
) -> None:
    """Output, input and exit code are as on one host."""
    with by_mpi(two, COUNTS, "b:2,c:2", environment) as run:
        out, errors = run.communicate("typed", timeout=DEADLINE)
    assert run.returncode == 3, errors
    lines = ["[0] 4 typed []", "[1] 4 - []", "[2] 4 - []", "[3] 4 - []"]
    assert sorted(out.splitlines()) == lines, errors
    assert "4 members on 2 hosts (mpi)" in errors
    assert "rank 2 (host c, pid " in errors


def test_nothing_is_left_of_a_run_whose_launcher_is_killed(
    two: SshHosts, environment: Mapping[str, str]
) -> None:
    """No rank, and nothing of MPI itself."""
    with by_mpi(two, STAYS, "b,c", environment) as run:
        assert run.stdout is not None
        assert sorted(run.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
        run.kill()
        assert run.wait(DEADLINE) == -signal.SIGKILL
