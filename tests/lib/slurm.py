"""A real Slurm of several nodes on this machine, which is not installed, and needs no other user than this one."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lib.fetched import debian_packages
from tests.lib.processes import DEADLINE, until

PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"),
    *("libmunge2", "libslurm38", "libhwloc15", "liblua5.1-0"),
)

_SETTINGS = """\
ClusterName=t
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmctldPidFile={state}/ctld.pid
SlurmdPidFile={state}/%n.pid
StateSaveLocation={state}/ctld
SlurmdSpoolDir={state}/%n
SlurmctldLogFile={state}/ctld.log
SlurmdLogFile={state}/%n.log
PluginDir={libraries}/slurm-wlm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
"""


class Slurm:
    """The cluster, with nodes n1, n2 and so on, whose names only Slurm knows."""

    def __init__(self, directory: Path, nodes: int, cpus: int = 4) -> None:
        root = debian_packages("slurm", *PACKAGES)
        libraries = next(root.glob("usr/lib/*/slurm-wlm"), None)
        if libraries is None:
            pytest.skip("slurm cannot be had here: its packages are others")
        self._sbin, self._nodes, self._state = root / "usr/sbin", nodes, directory / "state"
        (self._state / "ctld").mkdir(parents=True)
        self._settings = directory / "slurm.conf"
        self._processes: list[subprocess.Popen[bytes]] = []
        with contextlib.ExitStack() as stack:  # ports that are free, and all different
            sockets = [stack.enter_context(socket.socket()) for _ in range(nodes + 1)]
            for each in sockets:
                each.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in sockets]
        host = socket.gethostname().partition(".")[0]
        text = _SETTINGS.format(
            host=host,
            user=getpass.getuser(),
            port=ports[0],
            state=self._state,
            libraries=libraries.parent,
        )
        for number, port in enumerate(ports[1:], 1):
            text += f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            text += f"CPUs={cpus} State=UNKNOWN\n"
            (self._state / f"n{number}").mkdir()
        text += f"PartitionName=p Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP\n"
        self._settings.write_text(text)
        self.environment = os.environ | {
            "SLURM_CONF": str(self._settings),
            "LD_LIBRARY_PATH": f"{libraries.parent}:{libraries}",
            "PATH": f"{root / 'usr/bin'}:{self._sbin}:{os.environ['PATH']}",
            "PYTHONHASHSEED": "0",
        }

    def start(self) -> None:
        """Start the daemons, and wait until all nodes are idle."""
        self._start("ctld", "slurmctld-wlm", "-D", "-f", str(self._settings))
        for number in range(1, self._nodes + 1):
            helper = str(self._sbin / "slurmstepd-wlm")
            daemon = ("slurmd-wlm", "-D", "-N", f"n{number}", "-f", str(self._settings))
            self._start(f"n{number}", *daemon, "-d", helper)
        self.wait_until_idle()

    def _start(self, name: str, *command: str) -> None:
        with (self._state / f"{name}.out").open("w") as output:
            program = [str(self._sbin / command[0]), *command[1:]]
            self._processes.append(
                subprocess.Popen(program, stdout=output, stderr=output, env=self.environment)
            )

    def wait_until_idle(self) -> None:
        """Wait until no node has a job."""
        until(
            lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout == f"{self._nodes}\n",
            f"all nodes are idle; see {self._state}",
            pause=0.1,
        )

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm's to its end."""
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": DEADLINE}
        return subprocess.run(command, check=False, env=self.environment | variables, **options)

    @contextlib.contextmanager
    def started(self, *command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """A command under way, with pipes; killed at the end if it still goes on."""
        pipe = subprocess.PIPE
        environment = self.environment | variables
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def stop(self) -> None:
        """End all jobs and daemons."""
        if self._processes:
            self.run("scancel", "--user", getpass.getuser())
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
