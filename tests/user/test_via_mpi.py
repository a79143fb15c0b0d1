"""`orcalike run --via mpi` with the `mpiexec` of both MPIs, over hosts that each has a real sshd."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping

import pytest

from tests.lib.engine_program import make_key
from tests.lib.mpi import Mpi
from tests.lib.processes import DEADLINE, until
from tests.lib.ssh_hosts import SshHosts, ssh_hosts, unpack_sshd

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


@pytest.fixture
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """The user's host, and b and c."""
    root = unpack_sshd(tmp_path_factory.mktemp("sshd"))
    with ssh_hosts(3, root, tmp_path_factory.mktemp("s")) as made:
        yield made


@pytest.fixture(params=["mpich", "openmpi"])
def environment(two: SshHosts, request: pytest.FixtureRequest) -> Mapping[str, str]:
    """The variables of a user with a key and one of the MPIs, whose processes are started by ssh."""
    keys = two.directory / "keys"
    keys.mkdir()
    return Mpi(request.param, two.directory).over(two.shell()) | make_key(keys)


def test_a_run_by_agents_that_mpiexec_has_started(
    two: SshHosts, environment: Mapping[str, str]
) -> None:
    """Output, input and exit code are as on one host."""
    program = two.directory / "prog.py"
    program.write_text(COUNTS)
    with two.started("--via", "mpi", "-H", "b:2,c:2", str(program), env=environment) as run:
        out, errors = run.communicate("typed", timeout=DEADLINE)
    assert run.returncode == 3, errors
    lines = ["[0] 4 typed []", "[1] 4 - []", "[2] 4 - []", "[3] 4 - []"]
    assert sorted(out.splitlines()) == lines, errors
    assert "4 members on 2 hosts (mpi)" in errors
    assert "rank 2 (host c, pid " in errors
    until(lambda: two.rest() == [], f"the end of {two.rest()}")


def test_nothing_is_left_of_a_run_whose_launcher_is_killed(
    two: SshHosts, environment: Mapping[str, str]
) -> None:
    """No rank, and nothing of MPI itself."""
    program = two.directory / "prog.py"
    program.write_text(STAYS)
    with two.started("--via", "mpi", "-H", "b,c", str(program), env=environment) as run:
        assert run.stdout is not None
        assert sorted(run.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
        run.kill()
        assert run.wait(DEADLINE) == -signal.SIGKILL
    until(lambda: two.rest() == [], f"the end of {two.rest()}")
