"""What each host of a run must know to start its processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from orcalike.launch_protocol.environment import OF_ONE_PROCESS
from orcalike.transport.drivers.key_ring import KEY_SIZE
from orcalike.transport.record import Record

SequencerPlace: TypeAlias = Literal["witness", "rank"]
"""The process that orders, where the order is not in shared memory: one of its own, or rank 0."""

NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
#: How long a member on another host may be silent.
DETECTION_OVER_HOSTS = "2s"


class RunPlan(Record, kw_only=True):
    """What the processes of a run have in common, wherever they are."""

    identity: str
    seed: int
    program: str
    module: bool = False
    arguments: tuple[str, ...] = ()
    #: Where the ranks run; None for where the launcher does.
    directory: Path | None = None
    nprocs: int = 1
    scheme: Literal["unix", "tcp"] = "unix"
    sequencer: SequencerPlace = "witness"
    #: The layers of all stacks, without their medium; "" for the default.
    stack: str = ""
    #: Layers of the program's own, as `module:Class`.
    layers: tuple[str, ...] = ()
    #: What the user sets for the ranks.
    environment: Mapping[str, str] = NO_VARIABLES
    #: What the launcher's own environment has for all hosts.
    variables: Mapping[str, str] = NO_VARIABLES
    #: Whether what a rank has started ends with it when it fails.
    kills_rest: bool = False
    #: Whether the witness keeps the state of each group, so that it outlives all ranks.
    keeps_state: bool = False

    @property
    def program_folder(self) -> Path:
        """Where the ranks look for the program's own modules first."""
        return program_folder(self.program, self.directory, module=self.module)


def program_folder(program: str, directory: Path | None, *, module: bool) -> Path:
    """Where a program or module that is run in a directory finds its own modules."""
    directory = directory or Path.cwd()
    return directory if module else (directory / program).resolve().parent


def variables_for_all(environ: Mapping[str, str]) -> dict[str, str]:
    """What of the launcher's environment processes on other hosts get: orcalike's own, and no key.

    Hosts are not as quick as one to notice silence.
    """
    taken = {
        name: value
        for name, value in environ.items()
        if name.startswith("ORCALIKE_") and name not in OF_ONE_PROCESS and "KEY" not in name
    }
    for name in ("PYTHONHASHSEED", "TRACEPARENT", "OMP_NUM_THREADS"):
        if name in environ:
            taken[name] = environ[name]
    return {"ORCALIKE_DETECTION": DETECTION_OVER_HOSTS} | taken


def draw_key() -> bytes:
    """A new key for the connections of a run."""
    return os.urandom(KEY_SIZE)


def key_memory(key: bytes) -> int:
    """A descriptor of memory that holds a key, and that can be written to no more."""
    memory = os.memfd_create("orcalike-key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(memory, key)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    return memory
