"""What a run is asked to do, and what is made for it: directory, address, environment.

The environment's names are those of USERS.md 2.2: `ORCALIKE_*`, and torchrun's four besides,
so that programs written for it find their rank.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

#: A Unix socket's path in bytes: the kernel's bound is 108 with the final zero.
SOCKET_PATH_MAX = 107
#: The longest path below the runtime directory of the user: an endpoint's datagram socket.
_LONGEST = "/orcalike/01234567/0123456789abcdef~"
#: What is never inherited from a run around this one.
_OF_ONE_RANK = {
    "ORCALIKE_CONTROL_FD",
    "ORCALIKE_LISTEN_FD",
    "ORCALIKE_LOCAL_RANK",
    "ORCALIKE_RANK",
}


class LaunchError(Exception):
    """A run that cannot start; the text says why, and `code` is the exit code."""

    def __init__(self, message: str, code: int = 70) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asked for."""

    program: str
    module: bool = False
    arguments: tuple[str, ...] = ()
    nprocs: int = 1
    scheme: Literal["unix", "tcp"] = "unix"
    sequencer: Literal["witness", "rank"] = "witness"
    timeout: float | None = None
    grace: float = 5.0
    prefix: bool = True
    color: bool | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    quiet: bool = False
    seed: int | None = None


@dataclass(slots=True)
class Job:
    """What one run shares: its name, seed, private directory, and the group's first address."""

    options: Options
    identity: str
    seed: int
    directory: Path
    address: str = ""
    listener: socket.socket | None = None

    @classmethod
    def create(cls, options: Options) -> Job:
        """Choose a name and a seed, and make the private directory.

        Raises LaunchError where no directory can be made.
        """
        identity = secrets.token_hex(4)
        seed = secrets.randbelow(2**31) if options.seed is None else options.seed
        directory = runtime_base() / identity
        directory.mkdir(mode=0o700)
        return cls(options, identity, seed, directory)

    def listen(self) -> None:
        """Make the listening socket of the group's first member, and its address.

        The ranks can connect before that member runs: the kernel keeps them waiting.

        Raises OSError where the system has no room for it.
        """
        backlog = max(128, 2 * self.options.nprocs)
        if self.options.scheme == "unix":
            path = self.directory / ("witness" if self.options.sequencer == "witness" else "rank0")
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(str(path))
            self.address = f"unix:{path}"
        else:
            self.listener = socket.socket(socket.AF_INET)
            self.listener.bind(("127.0.0.1", 0))
            self.address = f"tcp:127.0.0.1:{self.listener.getsockname()[1]}"
        self.listener.listen(backlog)

    def close_listener(self) -> None:
        """Leave the socket to the member that listens, so that its death is noticed."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def base_environment(self) -> dict[str, str]:
        """What the witness and all ranks have alike."""
        size = str(self.options.nprocs)
        environment = {
            name: value for name, value in os.environ.items() if name not in _OF_ONE_RANK
        }
        environment.setdefault("OMP_NUM_THREADS", str(threads_per_rank(self.options.nprocs)))
        if environment.get("PYTHONHASHSEED", "random") == "random":
            environment["PYTHONHASHSEED"] = str(self.seed % 2**32)
        environment |= {
            "ORCALIKE_ADDRESS": self.address,
            "ORCALIKE_JOB_ID": self.identity,
            "ORCALIKE_LAUNCHER": str(os.getpid()),
            "ORCALIKE_LOCAL_WORLD_SIZE": size,
            "ORCALIKE_NODE_RANK": "0",
            "ORCALIKE_RESTART_COUNT": "0",
            "ORCALIKE_RUNTIME_DIR": str(self.directory),
            "ORCALIKE_SEED": str(self.seed),
            "ORCALIKE_SEQUENCER": self.options.sequencer,
            "ORCALIKE_WORLD_SIZE": size,
            "PYTHONUNBUFFERED": "1",
        }
        return environment

    def rank_environment(self, rank: int) -> dict[str, str]:
        """The environment of one rank; what `-x` set comes on top."""
        number, size = str(rank), str(self.options.nprocs)
        environment = self.base_environment() | {
            "ORCALIKE_LOCAL_RANK": number,
            "ORCALIKE_RANK": number,
            "LOCAL_RANK": number,
            "LOCAL_WORLD_SIZE": size,
            "RANK": number,
            "WORLD_SIZE": size,
        }
        if rank == 0 and self.options.sequencer == "rank" and self.listener is not None:
            environment["ORCALIKE_LISTEN_FD"] = str(self.listener.fileno())
        return environment | dict(self.options.environment)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def threads_per_rank(nprocs: int) -> int:
    """The share of the cores that numeric libraries of one rank should use."""
    return max(1, cores() // nprocs)


def runtime_base() -> Path:
    """The directory, private to this user, that holds the jobs' directories.

    Raises LaunchError where neither `$XDG_RUNTIME_DIR` nor `/tmp` gives one.
    """
    user_directory = os.environ.get("XDG_RUNTIME_DIR", "")
    fits = len(os.fsencode(user_directory + _LONGEST)) <= SOCKET_PATH_MAX
    if os.path.isabs(user_directory) and fits:
        base = Path(user_directory) / "orcalike"
        if os.access(user_directory, os.W_OK) and _make_private(base) is None:
            return base
    base = Path("/tmp") / f"orcalike-{os.getuid()}"
    if problem := _make_private(base):
        raise LaunchError(f"no runtime directory: {problem}")
    return base


def _make_private(directory: Path) -> str | None:
    """Make the directory for this user alone; says what is wrong with one that is there."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        return f"{directory}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return f"{directory} is not a directory of yours; remove it"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"{directory} is open to others; chmod 700 it"
    return None
