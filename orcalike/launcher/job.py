"""What a run is asked to do, and what is made for it: directory, address, environment.

The variables themselves are written by `launch_protocol.environment`.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import resource
import secrets
import socket
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orcalike.launch_protocol.environment import OF_ONE_PROCESS, RankEnvironment, RunEnvironment
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.drivers.key_ring import KEY_SIZE
from orcalike.transport.wording import counted

#: A Unix socket's path in bytes: the kernel's bound is 108 with the final zero.
SOCKET_PATH_MAX = 107
#: The longest path below the runtime directory of the user: an endpoint's datagram socket.
_LONGEST = "/orcalike/01234567/0123456789abcdef.12345~"

FILES_OF_RANK, FILES_OF_LAUNCHER = 5, 10
"""Open files of the launcher while a rank runs, and beside those: so many at the least."""
MANY = 16
"""With more ranks for each core than that, joining takes long, and the startup line says so."""


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
    #: The layers of all stacks, without their medium; "" for the default.
    stack: str = ""
    #: Layers of the program's own, as `module:Class`.
    layers: tuple[str, ...] = ()
    timeout: float | None = None
    grace: float = 5.0
    prefix: bool = True
    color: bool | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    quiet: bool = False
    seed: int | None = None
    #: Whether the others go on when a rank has failed.
    keep_going: bool = False
    #: How often each rank, and the witness, is started again when it fails.
    restart: int = 0

    @property
    def program_folder(self) -> Path:
        """Where the ranks look for the program's own modules first."""
        directory = self.directory or Path.cwd()
        return directory if self.module else (directory / self.program).resolve().parent

    @property
    def outlives_failures(self) -> bool:
        """Whether there is anything to go on with when a process has failed."""
        return self.keep_going or self.restart > 0


def check_number(options: Options) -> None:
    """Raise LaunchError, before anything is started, if so many ranks certainly cannot run."""
    ranks, members = options.nprocs, options.nprocs + (options.sequencer == "witness")
    if members > MEMBERS_MAX:
        raise LaunchError(
            f"{ranks} ranks are too many: a group has {MEMBERS_MAX} members at the most"
            f"{', the witness included' if members > ranks else ''}",
            code=2,
        )
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if ranks * FILES_OF_RANK + FILES_OF_LAUNCHER > limit:
        raise LaunchError(
            f"cannot start {counted(ranks, 'rank')}: the launcher has {FILES_OF_RANK} open files for each, and "
            f"may have {limit}; raise the limit (ulimit -n) or lower -n"
        )


@dataclass(slots=True)
class Job:
    """What one run shares: its name, seed, private directory, and its processes' addresses."""

    options: Options
    identity: str
    seed: int
    directory: Path
    #: Where the ranks listen.
    addresses: list[str] = field(default_factory=list)
    #: Where the group's first member listens: the witness, or rank 0.
    address: str = ""
    #: The first member's socket, until it has it.
    listener: socket.socket | None = None
    #: Where the processes read the run's key, over TCP; -1 if there is none.
    key_fd: int = -1
    #: They keep the ranks' TCP ports for them; no process can connect to them.
    _ports: list[socket.socket] = field(default_factory=list)

    @classmethod
    def create(cls, options: Options) -> Job:
        """Choose a name and a seed, and make the private directory.

        Raises LaunchError if no directory can be made.
        """
        identity = secrets.token_hex(4)
        seed = secrets.randbelow(2**31) if options.seed is None else options.seed
        directory = runtime_base() / identity
        directory.mkdir(mode=0o700)
        return cls(options, identity, seed, directory)

    def listen(self) -> None:
        """Make the listening socket of the group's first member, at its address.

        The ranks can connect before that member runs: the kernel keeps them waiting. It is called
        again, for the same address, when the witness is started again.

        Raises OSError if the system has no room for it.
        """
        if not self.address:
            self._choose_addresses()
        scheme, _, place = self.address.partition(":")
        if scheme == "unix":
            Path(place).unlink(missing_ok=True)
            self.listener = socket.socket(socket.AF_UNIX)
            # Of those that connect before the witness runs the kernel says which process it is, too.
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            os.fchmod(self.listener.fileno(), 0o600)  # the file that bind makes gets this mode
            self.listener.bind(place)
        else:
            self.listener = _bind_tcp(int(place.rpartition(":")[2]))
        self.listener.listen(max(128, 2 * self.options.nprocs))

    def _choose_addresses(self) -> None:
        """Give each rank, and the witness, an address that lasts as long as the run."""
        names = [f"r{rank}" for rank in range(self.options.nprocs)]
        if self.options.sequencer == "witness":
            names.insert(0, "witness")
        if self.options.scheme == "unix":
            addresses = [f"unix:{self.directory / name}" for name in names]
        else:
            _check_loopback()
            _check_sealing()
            self._ports = [_bind_tcp(0) for _ in names]
            self.key_fd = _draw_key()
            addresses = [f"tcp:127.0.0.1:{port.getsockname()[1]}" for port in self._ports]
        self.address = addresses[0]
        self.addresses = addresses[-self.options.nprocs :]

    def close_listener(self) -> None:
        """Leave the socket to the member that listens, so that its death is noticed."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def describe(self) -> str:
        """The startup line."""
        count = self.options.nprocs
        parts = [
            f"{counted(count, 'member')} on 1 host (local)",
            f"sequencer: {'witness' if self.options.sequencer == 'witness' else 'rank 0'}",
            f"seed {self.seed}",
        ]
        if self.options.keep_going:
            parts.append("keep going")
        if self.options.restart:
            parts.append(f"restart {self.options.restart}")
        if "OMP_NUM_THREADS" not in {*os.environ, *self.options.environment}:
            parts.append(f"OMP_NUM_THREADS {threads_per_rank(count)}")
        if count > MANY * cores():
            parts.append(f"{cores()} cores: with so many members joining takes long")
        return f"[orcalike] {' · '.join(parts)}"

    def witness_environment(self, restarts: int = 0, formed: Sequence[str] = ()) -> dict[str, str]:
        """The environment of the witness.

        `restarts` is how often this process was started again, `formed` the groups that were made
        before, which it must join and not make.
        """
        return self._inherited() | RunEnvironment(**self._of_the_run(restarts, formed)).to_environ()

    def rank_environment(
        self, rank: int, restarts: int = 0, formed: Sequence[str] = ()
    ) -> dict[str, str]:
        """The environment of one rank; what `-x` set comes on top."""
        listens = rank == 0 and self.options.sequencer == "rank" and self.listener is not None
        ours = RankEnvironment(
            **self._of_the_run(restarts, formed),
            rank=rank,
            listen=self.addresses[rank],
            listen_fd=self.listener.fileno() if listens and self.listener else None,
        )
        return self._inherited() | ours.to_environ() | dict(self.options.environment)

    def _inherited(self) -> dict[str, str]:
        """What comes from the launcher's own environment, and what Python and libraries look for."""
        environment = {
            name: value for name, value in os.environ.items() if name not in OF_ONE_PROCESS
        }
        environment.setdefault("OMP_NUM_THREADS", str(threads_per_rank(self.options.nprocs)))
        if environment.get("PYTHONHASHSEED", "random") == "random":
            environment["PYTHONHASHSEED"] = str(self.seed % 2**32)
        return environment | {"PYTHONUNBUFFERED": "1"}

    def _of_the_run(self, restarts: int, formed: Sequence[str]) -> dict[str, Any]:
        """The fields of a `RunEnvironment`."""
        return {
            "size": self.options.nprocs,
            "address": self.address,
            "sequencer": self.options.sequencer,
            "directory": str(self.directory),
            "seeds": tuple(dict.fromkeys([self.address, *self.addresses])),
            "formed": frozenset(formed),
            "job": self.identity,
            "launcher": os.getpid(),
            "seed": self.seed,
            "restarts": restarts,
            "key_fd": self.key_fd if self.key_fd >= 0 else None,
            "stack": self.options.stack,
            "layers": self.options.layers,
        }


def _bind_tcp(port: int) -> socket.socket:
    """A socket bound to a port of the loopback interface, any with 0; it does not listen yet.

    While none of them listens several can be bound to the same port: so one keeps it for another.
    """
    bound = socket.socket(socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


def _check_loopback() -> None:
    """Raise LaunchError if nothing can be sent over the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("127.0.0.1", 9))  # a route is looked up, and nothing is sent
        except OSError as error:
            raise LaunchError(
                f"--tcp needs the loopback interface: {error.strerror}; "
                "bring it up (ip link set lo up), or leave --tcp out"
            ) from None


def _check_sealing() -> None:
    """Raise LaunchError without the package that TCP connections are encrypted with."""
    if importlib.util.find_spec("cryptography") is None:
        raise LaunchError(
            "--tcp needs the package cryptography: pip install 'orcalike[net]', or leave --tcp out"
        )


def _draw_key() -> int:
    """A descriptor of memory that holds a new key, and that can be written to no more."""
    memory = os.memfd_create("orcalike-key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(memory, secrets.token_bytes(KEY_SIZE))
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    return memory


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def threads_per_rank(nprocs: int) -> int:
    """The share of the cores that numeric libraries of one rank should use."""
    return max(1, cores() // nprocs)


def runtime_base() -> Path:
    """The directory, private to this user, that holds the jobs' directories.

    Raises LaunchError if neither `$XDG_RUNTIME_DIR` nor `/tmp` gives one.
    """
    problem = None
    for base in _runtime_bases():
        problem = _make_private(base)
        if problem is None:
            return base
    raise LaunchError(
        f"no directory for the run's sockets: {problem}; "
        "set XDG_RUNTIME_DIR to a directory of yours with a short path"
    )


def job_directories() -> list[Path]:
    """The directories of this user's runs; of what has ended in no good way, too."""
    bases = [base for base in _runtime_bases() if _why_not_private(base) is None]
    return sorted(path for base in bases for path in base.iterdir() if path.is_dir())


def _runtime_bases() -> list[Path]:
    """Where `runtime_base` can be, the best first."""
    user_directory = os.environ.get("XDG_RUNTIME_DIR", "")
    fits = len(os.fsencode(user_directory + _LONGEST)) <= SOCKET_PATH_MAX
    bases = [Path("/tmp") / f"orcalike-{os.getuid()}"]
    if os.path.isabs(user_directory) and fits:
        bases.insert(0, Path(user_directory) / "orcalike")
    return bases


def _make_private(directory: Path) -> str | None:
    """Make the directory for this user alone; says what is wrong with one that is there."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return f"{directory}: {error.strerror}"
    problem = _why_not_private(directory)
    if problem is None and not os.access(directory, os.W_OK):
        return f"{directory}: Read-only file system"
    return problem


def _why_not_private(directory: Path) -> str | None:
    try:
        found = directory.lstat()
    except OSError as error:
        return f"{directory}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return f"{directory} is not a directory of yours; remove it"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"{directory} is open to others; chmod 700 it"
    return None
