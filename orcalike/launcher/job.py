"""What a run is asked to do, and what is chosen for it."""

from __future__ import annotations

import importlib.util
import os
import resource
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orcalike.launcher.errors import LaunchError
from orcalike.launcher.host_list import ListedHost, fill
from orcalike.launcher.local_host import cores, threads_per_rank
from orcalike.launcher.remote_command import Via, is_this_host
from orcalike.launcher.run_plan import (
    NO_VARIABLES,
    RunPlan,
    SequencerPlace,
    program_folder,
    variables_for_all,
)
from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.record import Record
from orcalike.transport.wording import counted

FILES_OF_RANK = 5
"""Open files of the launcher for each rank: its pidfd, what it prints (two), its line, and its report."""

FILES_OF_LAUNCHER = 15
"""And beside those, when the last rank starts.

Ten are there as long as the run: the standard streams (3), its output once more, not to block (2), the loop, the pipe of
signals (2), that to the reaper, and the control socket. Then the template's socket, the last rank's own ends of what it
prints, of its line and of its report (4), and its empty input; its pidfd comes later.
"""

FILES_OF_WITNESS = 4
"""It has no report."""

FILES_OF_ADDRESS = 1
"""By TCP each member has a port, which is kept for it; and the run has a key."""

MANY = 16
"""With more ranks for each core than that, joining takes long, and the startup line says so."""


class Options(Record, kw_only=True):
    """What the command line asked for."""

    program: str
    module: bool = False
    arguments: tuple[str, ...] = ()
    nprocs: int = 1
    scheme: Literal["unix", "tcp"] = "unix"
    sequencer: SequencerPlace = "witness"
    #: The layers of all stacks, without their medium; "" for the default.
    stack: str = ""
    #: Layers of the program's own, as `module:Class`.
    layers: tuple[str, ...] = ()
    timeout: float | None = None
    grace: float = 5.0
    prefix: bool = True
    color: bool | None = None
    environment: Mapping[str, str] = NO_VARIABLES
    directory: Path | None = None
    quiet: bool = False
    seed: int | None = None
    #: Whether the others go on when a rank has failed.
    keep_going: bool = False
    #: How often each rank, and the witness, is started again when it fails.
    restart: int = 0
    #: The hosts of the ranks; none for this one.
    hosts: tuple[ListedHost, ...] = ()
    #: What starts the agents there.
    via: Via = "ssh"
    #: The interpreter on other hosts; "" for this one's path.
    remote_python: str = ""
    #: The interface, or the network, at whose address others reach each host; "" to find it out.
    interface: str = ""

    @property
    def is_local(self) -> bool:
        """Whether all ranks run on this host."""
        return all(is_this_host(host.name) for host in self.hosts)

    @property
    def shares_memory(self) -> bool:
        """Whether the groups' order is in shared memory, without a sequencer, as far as their members can share it."""
        return self.has_layer("RING") or (self.has_layer("ORDER") and self.is_local)

    def has_layer(self, name: str) -> bool:
        """Whether the groups' stack has that layer."""
        return any(layer.partition("(")[0] == name for layer in self.stack.split(":"))

    @property
    def program_folder(self) -> Path:
        """Where the ranks look for the program's own modules first."""
        return program_folder(self.program, self.directory, module=self.module)

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
    if options.is_local and (needed := files_needed(options)) > limit:
        raise LaunchError(
            f"cannot start {counted(ranks, 'rank')}: the launcher has {needed} open files then, and "
            f"may have {limit}; raise the limit (ulimit -n) or lower -n"
        )


def files_needed(options: Options) -> int:
    """How many files the launcher has open at a time, if all processes are on this host."""
    witnesses = options.sequencer == "witness"
    files = FILES_OF_LAUNCHER + options.nprocs * FILES_OF_RANK + witnesses * FILES_OF_WITNESS
    if options.scheme == "tcp":
        files += (1 + options.nprocs + witnesses) * FILES_OF_ADDRESS
    return files


@dataclass(slots=True)
class Job:
    """One run: what was asked for, and what was chosen for it."""

    options: Options
    identity: str
    seed: int

    @classmethod
    def create(cls, options: Options) -> Job:
        """Choose a name and a seed."""
        seed = int.from_bytes(os.urandom(4)) >> 1 if options.seed is None else options.seed
        return cls(options, os.urandom(4).hex(), seed)

    def plan(self) -> RunPlan:
        """What the hosts of the run get."""
        options = self.options
        return RunPlan(
            identity=self.identity,
            seed=self.seed,
            program=options.program,
            module=options.module,
            arguments=options.arguments,
            directory=self._directory(),
            nprocs=options.nprocs,
            scheme=options.scheme if options.is_local else "tcp",
            sequencer=options.sequencer,
            stack=options.stack,
            layers=options.layers,
            environment=options.environment,
            variables={} if options.is_local else variables_for_all(os.environ),
            kills_rest=options.restart > 0,
            keeps_state=options.restart > 0,
        )

    def _directory(self) -> Path | None:
        """Other hosts are given a whole path."""
        directory = self.options.directory
        return directory if self.options.is_local else (directory or Path.cwd()).absolute()

    def describe(self) -> str:
        """The startup line."""
        count = self.options.nprocs
        parts = [
            f"{counted(count, 'member')} on {self._where()}",
            self._order(),
            f"seed {self.seed}",
        ]
        if self.options.keep_going:
            parts.append("keep going")
        if self.options.restart:
            parts.append(f"restart {self.options.restart}")
        named = {*os.environ, *self.options.environment}
        if "OMP_NUM_THREADS" not in named and self.options.is_local:
            parts.append(f"OMP_NUM_THREADS {threads_per_rank(count)}")
        if count > MANY * cores() and self.options.is_local:
            parts.append(f"{cores()} cores: with so many members joining takes long")
        return f"[orcalike] {' · '.join(parts)}"

    def _order(self) -> str:
        if self.options.shares_memory:
            return "order: shared memory"
        return f"sequencer: {'witness' if self.options.sequencer == 'witness' else 'rank 0'}"

    def _where(self) -> str:
        if self.options.is_local:
            return "1 host (local)"
        used = sum(count > 0 for count in fill(list(self.options.hosts), self.options.nprocs))
        return f"{counted(used, 'host')} ({self.options.via})"


def check_tcp(asked_by: str) -> None:
    """Raise LaunchError if nothing can be sent over the loopback interface, or nothing encrypted."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("127.0.0.1", 9))  # a route is looked up, and nothing is sent
        except OSError as error:
            raise LaunchError(
                f"{asked_by} needs the loopback interface: {error.strerror}; "
                f"bring it up (ip link set lo up), or leave {asked_by} out"
            ) from None
    if importlib.util.find_spec("cryptography") is None:
        raise LaunchError(
            f"{asked_by} needs the package cryptography: pip install 'orcalike[net]', or leave "
            f"{asked_by} out"
        )
