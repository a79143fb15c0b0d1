"""The command by which the agent of a host is started: nothing of the run is on it."""

from __future__ import annotations

import shlex
import socket
import sys

from orcalike.launch_protocol.environment import find_ssh

MODULE = "orcalike.launcher.agent"
CONNECT_SECONDS = 10


def agent_command(python: str) -> list[str]:
    """What starts the agent. `exec` is the one word that sh, csh and fish share, and spares a shell."""
    return ["exec", python, "-P", "-m", MODULE]


def ssh_command(host: str, python: str = "") -> list[str]:
    """Starts the agent on a host by ssh, or by what ORCALIKE_SSH says, words as in a shell."""
    words = agent_command(python or sys.executable)
    return [
        *shlex.split(find_ssh()),
        *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"),
        *("-o", "ServerAliveInterval=5", host.replace("[", "").replace("]", ""), "--"),
        *map(shlex.quote, words),
    ]


def is_this_host(name: str) -> bool:
    """Whether a user means the launcher's own host, which needs no connection."""
    return name in ("localhost", socket.gethostname())
