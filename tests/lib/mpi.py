"""`mpiexec` of both MPIs, from their packages, which are not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.lib.fetched import python_package
from tests.lib.processes import DEADLINE

REMOTE_SHELL = """\
#!/bin/sh
# As ssh: options, a host, a command; but every host is this one.
while [ "${1#-}" != "$1" ]; do shift; done
shift
exec sh -c "$*"
"""


class Mpi:
    """One of the two: "mpich" or "openmpi"."""

    def __init__(self, name: str, directory: Path) -> None:
        self._name, self._directory = name, directory
        prefix, mpi4py = python_package(name), python_package("mpi4py")
        library = prefix / "lib" / ("libmpi.so.12" if name == "mpich" else "libmpi.so.40")
        self._mpiexec = prefix / "bin" / "mpiexec"
        self.environment = os.environ | {
            "MPI4PY_LIBMPI": str(library),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(next(mpi4py.glob("lib/python*/site-packages"))),
        }

    def run(
        self, count: int, *program: str, hosts: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, on this host or, if `hosts`, on two that are this one by other names."""
        command = [str(self._mpiexec), *(self._over_hosts(count) if hosts else self._on_one())]
        return subprocess.run(
            [*command, "-n", str(count), sys.executable, *program],
            check=False,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=self.environment | variables,
        )

    def over(self, shell: Path) -> dict[str, str]:
        """Variables with which programs find `mpiexec`, which reaches other hosts by the command `shell`."""
        return self.environment | {
            "PATH": f"{self._mpiexec.parent}:{os.environ['PATH']}",
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(shell),
            "HYDRA_IFACE": "eth0",
            "PRTE_MCA_plm_ssh_agent": str(shell),
        }

    def _on_one(self) -> list[str]:
        return [] if self._name == "mpich" else ["--oversubscribe"]

    def _over_hosts(self, count: int) -> list[str]:
        if self._name == "mpich":
            return ["-launcher", "fork", "-hosts", "one,other"]
        hosts = ",".join(f"127.0.0.{number}:{(count + 1) // 2}" for number in (2, 3))
        shell = self._directory / "shell"
        shell.write_text(REMOTE_SHELL)
        shell.chmod(0o700)
        return ["--prtemca", "plm_ssh_agent", str(shell), "--host", hosts]
