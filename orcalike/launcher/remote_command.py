"""The command by which the agent of a host is started: nothing of the run is on it.

By `ssh`, or as a job step of one task by Slurm's `srun`, or as one process by `mpiexec`: the standard input
and output of each reach the agent.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from typing import Literal, TypeAlias

from orcalike.launch_protocol.environment import find_ssh
from orcalike.launcher.errors import LaunchError
from orcalike.launcher.host_list import ListedHost, for_ssh

Via: TypeAlias = Literal["ssh", "slurm", "mpi"]

MODULE = "orcalike.launcher.agent"
KEY_FILE = "ORCALIKE_KEY_FILE"
CONNECT_SECONDS = 10
PROBE_SECONDS = 20
UNREACHABLE = 69


def agent_command(python: str = "") -> list[str]:
    """What starts the agent."""
    return [python or sys.executable, "-P", "-m", MODULE]


def host_command(via: Via, host: ListedHost, python: str = "") -> list[str]:
    """Starts the agent on a host; raises LaunchError if there is none, or it cannot be known."""
    if via == "slurm":
        return srun_command(host, python)
    return mpiexec_command(host, python) if via == "mpi" else ssh_command(host, python)


def ssh_command(host: ListedHost, python: str = "") -> list[str]:
    """By ssh, or by what ORCALIKE_SSH says.

    `exec` is the one word that sh, csh and fish share, and spares a shell. Raises LaunchError if what it says
    is not words of a shell.
    """
    try:
        ssh = shlex.split(find_ssh())
    except ValueError as error:
        raise LaunchError(f"ORCALIKE_SSH={find_ssh()}: {error}", 2) from None
    return [
        *ssh,
        *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"),
        *("-o", "ServerAliveInterval=5", for_ssh(host.name), "--"),
        *map(shlex.quote, ["exec", *agent_command(python)]),
    ]


def srun_command(host: ListedHost, python: str = "") -> list[str]:
    """As a step of one task, which has the cores of the host's ranks, beside other steps of the job."""
    return [
        *("srun", "--nodes=1", "--ntasks=1", f"--nodelist={host.name}", "--overlap"),
        *(
            f"--cpus-per-task={host.cores or host.slots}",
            "--cpu-bind=none",
            "--unbuffered",
            "--quiet",
        ),
        *agent_command(python),
    ]


def mpiexec_command(host: ListedHost, python: str = "") -> list[str]:
    """As one process, which is bound to no core; Open MPI's options are other ones than MPICH's.

    MPICH's gives processes on other hosts the variables that there are here; Open MPI's does not.
    """
    if is_open_mpi():
        options = ["--host", f"{host.name}:{host.slots}", "--bind-to", "none"]
        if os.environ.get(KEY_FILE):
            options += ["-x", KEY_FILE]  # a path: the key itself is on each host
    else:
        options = ["-hosts", host.name, "-bind-to", "none"]
    return ["mpiexec", "-n", "1", *options, *agent_command(python)]


def is_open_mpi() -> bool:
    """Whether `mpiexec` is Open MPI's; raises LaunchError if it does not say so."""
    try:
        said = subprocess.run(
            ["mpiexec", "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
            timeout=PROBE_SECONDS,
        )
    except OSError as error:
        raise LaunchError(
            f"mpiexec: {error.strerror}; install it, or start the agents by another one: --via",
            UNREACHABLE,
        ) from None
    except subprocess.TimeoutExpired:
        raise LaunchError(
            f"mpiexec --version has not ended after {PROBE_SECONDS} s; start the agents by another one: --via",
            UNREACHABLE,
        ) from None
    return "HYDRA" not in said.stdout.upper()


def is_this_host(name: str) -> bool:
    """Whether a user means the launcher's own host, which needs no connection."""
    return name in ("localhost", socket.gethostname())
