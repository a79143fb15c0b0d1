"""How this process takes part: alone, in a launched program, or through addresses that it names.

What a launcher says is in the environment; the first complete match wins, and one line says what
was found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from orcalike.errors import OrcalikeError
from orcalike.transport.degree import Resilience, degree_of
from orcalike.transport.drivers.sockets import normal

CHECKS = frozenset({"hash", "strict"})
"""What `ORCALIKE_CHECK` can ask for."""


DEFAULT_NAME = "default"
"""The program's own group."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What the launcher says of this process (`ORCALIKE_*`)."""

    rank: int
    size: int
    address: str
    """Of the witness, or of rank 0 where there is none."""
    sequencer: str
    """"witness" or "rank"."""
    directory: str
    """The run's own folder, for sockets."""
    listen_fd: int | None
    """A listening socket that the launcher made for this rank."""

    def address_of(self, name: str) -> str:
        """Where the group of that name can be joined.

        The witness serves every group of the program. Rank 0 has one socket from the launcher, for
        the program's own group, and listens for each other one beside it.
        """
        if self.sequencer == "witness" or name == DEFAULT_NAME:
            return self.address
        return f"unix:{self.directory}/{blake2b(name.encode(), digest_size=8).hexdigest()}"

    @property
    def makes_group(self) -> bool:
        """Whether this rank makes the group; the others join it."""
        return self.sequencer == "rank" and self.rank == 0


def find_launch(environ: Mapping[str, str] = os.environ) -> Launch | None:
    """What the environment says; None where nobody launched this process.

    Raises OrcalikeError where a rank is given and the rest is missing or makes no sense.
    """
    if "ORCALIKE_RANK" not in environ:
        return None
    try:
        rank, size = int(environ["ORCALIKE_RANK"]), int(environ["ORCALIKE_WORLD_SIZE"])
        address = environ["ORCALIKE_ADDRESS"]
        fd = environ.get("ORCALIKE_LISTEN_FD")
        sequencer = environ.get("ORCALIKE_SEQUENCER", "witness")
        directory = environ["ORCALIKE_RUNTIME_DIR"]
        launch = Launch(rank, size, address, sequencer, directory, int(fd) if fd else None)
    except KeyError as error:
        raise OrcalikeError(f"ORCALIKE_RANK is set, but {error.args[0]} is not") from None
    except ValueError as error:
        raise OrcalikeError(f"what the launcher set makes no sense: {error}") from None
    if not 0 <= rank < size or sequencer not in ("witness", "rank"):
        raise OrcalikeError(f"what the launcher set makes no sense: {launch}")
    return launch


def find_checks(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """What `ORCALIKE_CHECK` asks for, words with commas between them.

    Raises ValueError for what this version cannot check.
    """
    checks = frozenset(filter(None, environ.get("ORCALIKE_CHECK", "").split(",")))
    if unknown := checks - CHECKS:
        raise ValueError(
            f"ORCALIKE_CHECK={','.join(sorted(unknown))}: there is {', '.join(sorted(CHECKS))}"
        )
    return checks


@dataclass(frozen=True, slots=True)
class Plan:
    """How one membership begins."""

    name: str
    how: str
    """"alone", "launched", "listen" or "seeds"."""
    seeds: tuple[str, ...] = ()
    listen: str = ""
    launch: Launch | None = None
    size: int | None = None
    resilience: Resilience = 0
    blocked: str = "wait"
    stack: str | None = None
    timeout: float | None = None
    checks: frozenset[str] = frozenset()
    """What `ORCALIKE_CHECK` asks for: "hash" keeps a digest over all deliveries."""

    @property
    def rank(self) -> int | None:
        """The rank that is asked for."""
        return self.launch.rank if self.launch else None


def make_plan(
    name: str | None,
    *,
    seeds: str | Sequence[str] | None,
    listen: str | None,
    size: int | None,
    resilience: Resilience,
    blocked: str,
    stack: str | None,
    timeout: float | None,
) -> Plan:
    """The plan for the arguments of `join`; raises ValueError where they contradict each other."""
    if blocked not in ("wait", "raise"):
        raise ValueError(f'blocked={blocked!r}: "wait" or "raise"')
    degree_of(resilience)
    if seeds and listen:
        raise ValueError("seeds join a group, listen makes one: give one of them")
    if size is not None and size < 1:
        raise ValueError(f"size={size}: a group has one member at the least")
    launch = find_launch() if not seeds and not listen else None
    how = "seeds" if seeds else "listen" if listen else "launched" if launch else "alone"
    addresses = (seeds,) if isinstance(seeds, str) else tuple(seeds or ())
    addresses = tuple(map(normal, addresses))
    if how == "alone" and (size or 1) > 1:
        raise ValueError(f"size={size}, but this group of one has no address: give listen or seeds")
    return Plan(
        name or DEFAULT_NAME,
        how,
        addresses,
        listen or "",
        launch,
        size,
        resilience,
        blocked,
        stack,
        timeout,
        find_checks(),
    )
