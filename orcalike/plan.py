"""How this process takes part: alone, in a launched program, or through addresses that it names.

What a launcher says is in the environment; the first complete match wins, and one line says what
was found.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from urllib.parse import unquote

from orcalike.errors import InsecureConfig, JoinFailed, OrcalikeError
from orcalike.failpoints import Failpoint, find_failpoints
from orcalike.keys import REMEDY, find_key, read_key
from orcalike.meeting import MeetingPlace
from orcalike.runtime.durations import Duration, parse_duration, seconds_of
from orcalike.transport.config import StackConfig
from orcalike.transport.degree import Resilience, degree_of
from orcalike.transport.drivers.sockets import normal

_log = logging.getLogger("orcalike")

CHECKS = frozenset({"hash", "none", "order", "shadow", "strict"})
"""What `ORCALIKE_CHECK` and `join(check=...)` can ask for."""


DETECTION, SLOW = StackConfig().detection, StackConfig().slow
SECONDS_LEAST, SECONDS_MOST = 0.01, 86400.0
"""What can be set as a detection time, or as `slow_timeout`."""

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
    listen: str
    """Where this rank listens for the program's own group, started again or not."""
    listen_fd: int | None
    """A socket that listens there, which the launcher made for this rank."""
    seeds: tuple[str, ...]
    """Where the program's own group can be joined: through the witness, or any rank."""
    formed: frozenset[str]
    """The groups that were made before this process was started."""

    def listen_at(self, name: str) -> str:
        """Where this rank listens for the group of that name: each group has its own address."""
        return self.listen if name == DEFAULT_NAME else _beside(self.directory, name, self.rank)

    def seeds_of(self, name: str) -> tuple[str, ...]:
        """Where the group of that name can be joined, the best first: this rank's own is left out."""
        own = self.listen_at(name)
        seeds = _seeds_of(name, self.seeds, self.directory, self.size)
        return tuple(seed for seed in seeds if seed != own) or (own,)

    def addresses(self, name: str) -> dict[int | None, str]:
        """Where each rank, and the witness (None), listens for the group of that name."""
        return _by_who(_seeds_of(name, self.seeds, self.directory, self.size), self.size)

    def makes_group(self, name: str) -> bool:
        """Whether this rank makes the group; the others join it, and so do those who come again."""
        return self.sequencer == "rank" and self.rank == 0 and name not in self.formed


def find_launch(environ: Mapping[str, str] = os.environ) -> Launch | None:
    """What the environment says; None in a process that was not launched, as a rank's child.

    Raises OrcalikeError where a rank is given and the rest is missing or makes no sense.
    """
    if "ORCALIKE_RANK" not in environ or is_ranks_child(environ):
        return None
    try:
        rank, size = int(environ["ORCALIKE_RANK"]), int(environ["ORCALIKE_WORLD_SIZE"])
        fd = environ.get("ORCALIKE_LISTEN_FD")
        launch = Launch(
            rank,
            size,
            environ["ORCALIKE_ADDRESS"],
            environ.get("ORCALIKE_SEQUENCER", "witness"),
            environ["ORCALIKE_RUNTIME_DIR"],
            environ["ORCALIKE_LISTEN"],
            int(fd) if fd else None,
            tuple(environ["ORCALIKE_SEEDS"].split(",")),
            find_formed(environ),
        )
    except KeyError as error:
        raise OrcalikeError(f"ORCALIKE_RANK is set, but {error.args[0]} is not") from None
    except ValueError as error:
        raise OrcalikeError(f"what the launcher set makes no sense: {error}") from None
    if not 0 <= rank < size or launch.sequencer not in ("witness", "rank"):
        raise OrcalikeError(f"what the launcher set makes no sense: {launch}")
    return launch


def is_ranks_child(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a rank of a launched program has started this process, which is none."""
    return environ.get("ORCALIKE_RANK_PID", str(os.getpid())) != str(os.getpid())


@dataclass(frozen=True, slots=True)
class Foreign:
    """A world of processes that another launcher has started, this one among them."""

    launcher: str
    rank: str
    size: int


_FOREIGN = (
    ("srun", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("mpiexec (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_RANK", "PMI_SIZE"),
    ("mpiexec (MVAPICH)", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE"),
)
"""A launcher, the variable that tells that it was this one, this process's rank, how many there are."""


def find_foreign(environ: Mapping[str, str] = os.environ) -> Foreign | None:
    """The world of another launcher that this process belongs to; None for a world of one."""
    for launcher, sign, rank, size in _FOREIGN:
        count = environ.get(size, "")
        if environ.get(sign) and count.isdigit() and int(count) > 1:
            return Foreign(launcher, environ.get(rank, "?"), int(count))
    return None


def _refuse_world_of_one(environ: Mapping[str, str] = os.environ) -> None:
    """Raise JoinFailed where each process of a foreign world would make a group of its own."""
    foreign = find_foreign(environ)
    if foreign is not None:
        raise JoinFailed(
            f"this is process {foreign.rank} of {foreign.size} that {foreign.launcher} started, "
            "which orcalike does not join to one group yet: each would have a group of its own. "
            f"Start the program with `orcalike run -n {foreign.size}`; or give one process "
            "join(listen=...) and the others join(seeds=...); or say join(size=1) if each is to "
            "be alone"
        )


def find_seeds(name: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Where any process of a launched program can join the group of that name, the best first.

    Raises KeyError where nobody launched this process.
    """
    seeds = tuple(environ["ORCALIKE_SEEDS"].split(","))
    size = int(environ["ORCALIKE_WORLD_SIZE"])
    return _seeds_of(name, seeds, environ["ORCALIKE_RUNTIME_DIR"], size)


def find_addresses(name: str, environ: Mapping[str, str] = os.environ) -> dict[int | None, str]:
    """Where each rank of a launched program, and its witness (None), listens for that group."""
    return _by_who(find_seeds(name, environ), int(environ["ORCALIKE_WORLD_SIZE"]))


def _by_who(seeds: tuple[str, ...], size: int) -> dict[int | None, str]:
    addresses: dict[int | None, str] = dict(enumerate(seeds[-size:]))
    return addresses | dict.fromkeys((None,)[: len(seeds) - size], seeds[0])


def _seeds_of(name: str, seeds: tuple[str, ...], directory: str, size: int) -> tuple[str, ...]:
    """`seeds` are the program's own group's: the witness's, where there is one, and the ranks'.

    The witness serves every group at one address; a rank listens for each at another one.
    """
    if name == DEFAULT_NAME:
        return seeds
    return (*seeds[:-size], *(_beside(directory, name, rank) for rank in range(size)))


def _beside(directory: str, name: str, rank: int) -> str:
    digest = blake2b(name.encode(), digest_size=8).hexdigest()
    return f"unix:{directory}/{digest}.{rank}"


def find_formed(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The names of the groups that were made before this process was started."""
    return frozenset(map(unquote, filter(None, environ.get("ORCALIKE_FORMED", "").split(","))))


def find_checks(
    given: str | None = None, environ: Mapping[str, str] = os.environ
) -> frozenset[str]:
    """What `join(check=...)` and `ORCALIKE_CHECK` ask for, words with commas between them.

    Raises ValueError for what this version cannot check.
    """
    asked = ("check=", given or ""), ("ORCALIKE_CHECK=", environ.get("ORCALIKE_CHECK", ""))
    checks: frozenset[str] = frozenset()
    for source, text in asked:
        words = frozenset(filter(None, (word.strip() for word in text.split(","))))
        if unknown := words - CHECKS:
            known = ", ".join(sorted(CHECKS))
            raise ValueError(f"{source}{','.join(sorted(unknown))}: there is {known}")
        checks |= words
    return checks


def find_detection(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """(detection time, slow_timeout) in ns, as the environment has them: seconds, or 500ms.

    Raises ValueError for what is no time.
    """
    return (
        _nanoseconds("ORCALIKE_DETECTION", DETECTION, environ),
        _nanoseconds("ORCALIKE_SLOW_TIMEOUT", SLOW, environ),
    )


def _nanoseconds(name: str, default: int, environ: Mapping[str, str]) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if not SECONDS_LEAST <= seconds <= SECONDS_MOST:
        raise ValueError(
            f"{name}={text}: a duration such as 500ms, from {SECONDS_LEAST:g} to "
            f"{SECONDS_MOST:g} seconds"
        )
    return round(seconds * 1e9)


def find_history(environ: Mapping[str, str] = os.environ) -> str | None:
    """The folder for histories, that `ORCALIKE_HISTORY` names; None where nobody asks."""
    return environ.get("ORCALIKE_HISTORY") or None


@dataclass(frozen=True, slots=True)
class Plan:
    """How one membership begins."""

    name: str
    how: str
    """"alone", "launched", "listen", "seeds" or, until it is settled which of these two, "at"."""
    seeds: tuple[str, ...] = ()
    listen: str = ""
    launch: Launch | None = None
    size: int | None = None
    resilience: Resilience = 0
    degree: str = "required"
    """"available": a degree counts as far as the group has members for it."""
    blocked: str = "wait"
    stack: str | None = None
    timeout: float | None = None
    checks: frozenset[str] = frozenset()
    """What is looked for that costs too much to look for always: words of `CHECKS`."""
    history: str | None = None
    """The folder of the members' histories."""
    failpoints: tuple[Failpoint, ...] = ()
    """The faults that `ORCALIKE_FAIL` asks for, where the core passes their steps."""
    detection: int = DETECTION
    """D, ns: a member that is not heard for so long is suspected."""
    slow: int = SLOW
    """`slow_timeout`, ns: a member that stays behind for so long is expelled."""
    key: bytes | None = field(default=None, repr=False)
    """What TCP connections must prove."""
    place: MeetingPlace | None = None
    """Where symmetric workers meet."""

    def settled(self) -> Plan:
        """The plan, once it is known whether a member is there already; the place is locked."""
        if self.place is None:
            return self
        if seeds := self.place.members():
            return replace(self, how="seeds", seeds=seeds)
        return replace(self, how="listen", listen=self.place.new_address())

    @property
    def rank(self) -> int | None:
        """The rank that is asked for."""
        return self.launch.rank if self.launch else None


def find_seed(name: str, environ: Mapping[str, str] = os.environ) -> int:
    """The seed of a group of that name, if this process makes it: drawn where none is given.

    Each group of a launched program has its own, from the run's (`orcalike run --seed`).
    """
    given = environ.get("ORCALIKE_SEED")
    if not given:
        return secrets.randbits(63)
    return int.from_bytes(blake2b(f"{given} {name}".encode(), digest_size=7).digest(), "big")


def make_plan(
    name: str | None,
    *,
    seeds: str | Sequence[str] | None,
    listen: str | None,
    size: int | None,
    resilience: Resilience,
    degree: str = "required",
    blocked: str,
    stack: str | None,
    timeout: Duration | None,
    key: bytes | str | os.PathLike[str] | None = None,
    at: str | None = None,
    check: str | None = None,
) -> Plan:
    """The plan for the arguments of `join`; raises ValueError where they contradict each other.

    Raises InsecureConfig for a TCP address without a key.
    """
    if blocked not in ("wait", "raise"):
        raise ValueError(f'blocked={blocked!r}: "wait" or "raise"')
    if degree not in ("required", "available"):
        raise ValueError(f'degree={degree!r}: "required" or "available"')
    degree_of(resilience)
    name = name or DEFAULT_NAME
    if seeds and listen:
        raise ValueError("seeds join a group, listen makes one: give one of them")
    if at and (seeds or listen):
        raise ValueError("at joins or makes a group: give no seeds, and nothing to listen at")
    if size is not None and size < 1:
        raise ValueError(f"size={size}: a group has one member at the least")
    launch = None if seeds or listen or at else find_launch()
    how = (
        "seeds"
        if seeds
        else "listen"
        if listen
        else "at"
        if at
        else "launched"
        if launch
        else "alone"
    )
    addresses = (seeds,) if isinstance(seeds, str) else tuple(seeds or ())
    addresses = tuple(map(normal, addresses))
    secret = find_key() if key is None else read_key(key)
    if secret is None and any(
        map(_is_tcp, (*addresses, listen or "", launch.listen if launch else ""))
    ):
        raise InsecureConfig(REMEDY)
    if how == "alone" and (size or 1) > 1:
        raise ValueError(f"size={size}, but this group of one has no address: give listen or seeds")
    if how == "alone" and size is None:
        _refuse_world_of_one()
        if is_ranks_child() and "ORCALIKE_RANK" in os.environ:
            _log.warning(
                "this process was started by rank %s, and is no rank: it has a group of its own; "
                "give join(seeds=group.address) of the rank's group to join that, or join(size=1)",
                os.environ["ORCALIKE_RANK"],
            )
    return Plan(
        name,
        how,
        addresses,
        listen or "",
        launch,
        size,
        resilience,
        degree,
        blocked,
        stack,
        seconds_of(timeout),
        find_checks(check),
        find_history(),
        find_failpoints(),
        *find_detection(),
        secret,
        MeetingPlace(at, None if name == DEFAULT_NAME else name) if at else None,
    )


def _is_tcp(address: str) -> bool:
    return address.startswith("tcp:") and bool(normal(address))
