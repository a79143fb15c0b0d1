"""What the environment has about this process: its rank, its group's addresses, and its options (`ORCALIKE_*`).

The launcher sets most of it. Another launcher's variables are known too, so that its processes do not
each make a group of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from orcalike.errors import OrcalikeError
from orcalike.launch_protocol.quoting import quoted, unquoted
from orcalike.runtime.durations import parse_duration
from orcalike.transport.config import StackConfig
from orcalike.transport.record import Record
from orcalike.transport.wire.digest import blake2b

CHECKS = frozenset({"hash", "none", "order", "shadow", "strict"})
"""What `ORCALIKE_CHECK` and `join(check=...)` can ask for."""

DETECTION, SLOW = StackConfig().detection, StackConfig().slow
DETECTION_OVER_TCP = 2_000_000_000
"""D, ns, if nothing is set: over Unix sockets, where the kernel says if a silent process runs, and over TCP, where
it does not."""

SHARED_ORDER = "PACK:XFER:ORDER:MBRSHIP:COM"
"""The layers, without their medium, of groups whose order is in shared memory while their members can share it."""

SHARED_ORDER_MOST = 32
"""With more ranks it is not the default: half of those that it has room for, as others may join, and ranks may fork."""

SECONDS_LEAST, SECONDS_MOST = 0.01, 86400.0
"""What can be set as a detection time, or as `slow_timeout`."""

DEFAULT_NAME = "default"
"""The program's own group."""


OF_ONE_PROCESS = frozenset(
    {
        "ORCALIKE_CONTROL_FD",
        "ORCALIKE_FORMED",
        "ORCALIKE_KEY_FD",
        "ORCALIKE_LISTEN",
        "ORCALIKE_LISTEN_FD",
        "ORCALIKE_LOCAL_RANK",
        "ORCALIKE_RANK",
        "ORCALIKE_RANK_PID",
        "ORCALIKE_REAPER_FD",
        "ORCALIKE_REPORT_FD",
        "ORCALIKE_TEMPLATE_FD",
        "ORCALIKE_UNANIMOUS",
    }
)
"""What a run never inherits from one around it.

A rank has `ORCALIKE_CONTROL_FD` (its end of the line to the launcher) and `ORCALIKE_KEY_FD` in a form by which what it
starts takes neither for its own (`own_descriptor`); what `group.fork` starts has the first one, and reports by it which member it
is (`control_channel.report_member`). `ORCALIKE_RANK_PID` is the rank's process;
`ORCALIKE_REPORT_FD`, on which it reports an exception that ends it, is gone when the program begins, and so are
`ORCALIKE_REAPER_FD`, where it names its process group (`launcher.reaper`), and `ORCALIKE_TEMPLATE_FD`, on which a
process that ranks are forked from is asked for them.
"""


class RunEnvironment(Record, kw_only=True):
    """What the launcher gives to the witness and to all ranks of a run alike."""

    size: int
    address: str
    """Of the witness, or of rank 0 if there is none."""
    sequencer: str
    """"witness" or "rank"."""
    directory: str
    """The run's own folder, for sockets."""
    seeds: tuple[str, ...]
    """Where the program's groups can be joined: through the witness, or any rank."""
    formed: frozenset[str] = frozenset()
    """The groups that were made before this process was started."""
    job: str = ""
    """The run's identity."""
    launcher: int = 0
    """The launcher's process."""
    seed: int = 0
    restarts: int = 0
    """How often this process was started again."""
    key_fd: int | None = None
    """A descriptor that holds the run's key, if its connections need one."""
    stack: str = ""
    """The layers of the witness, and of each rank that asks for no other stack; "" for the default."""
    layers: tuple[str, ...] = ()
    """Layers of the program's own, as `module:Class`."""
    node: int = 0
    """The number of this process's host; this and the next are for the program, and are not read here."""
    local_size: int = 0
    """How many ranks are on it; 0 for all."""

    def to_environ(self) -> dict[str, str]:
        """The variables, as a process finds them."""
        size = str(self.size)
        environ = {
            "ORCALIKE_ADDRESS": self.address,
            "ORCALIKE_JOB_ID": self.job,
            "ORCALIKE_LAYERS": ",".join(self.layers),
            "ORCALIKE_LAUNCHER": str(self.launcher),
            "ORCALIKE_LOCAL_WORLD_SIZE": str(self.local_size or self.size),
            "ORCALIKE_NODE_RANK": str(self.node),
            "ORCALIKE_RESTART_COUNT": str(self.restarts),
            "ORCALIKE_RUNTIME_DIR": self.directory,
            "ORCALIKE_SEED": str(self.seed),
            "ORCALIKE_SEEDS": ",".join(self.seeds),
            "ORCALIKE_SEQUENCER": self.sequencer,
            "ORCALIKE_STACK": self.stack,
            "ORCALIKE_WORLD_SIZE": size,
        }
        if self.key_fd is not None:
            environ["ORCALIKE_KEY_FD"] = str(self.key_fd)
        if self.formed:
            names = map(quoted, sorted(self.formed))
            environ["ORCALIKE_FORMED"] = ",".join(names)
        return environ


class RankEnvironment(RunEnvironment, kw_only=True):
    """What the launcher gives to one rank."""

    rank: int
    listen: str
    """Where this rank listens for all groups, started again or not."""
    listen_fd: int | None = None
    """A socket that listens there, which the launcher made for this rank."""
    local_rank: int | None = None
    """Its place among the ranks of its host; None if all are on one."""
    unanimous: bool = False
    """No launcher knows whether the group was made before: rank 0 makes it, and only if all ranks are in none.

    `seeds` are then where they may be; at some of these addresses no process may be, or a foreign one.
    """

    def to_environ(self) -> dict[str, str]:
        """The variables; those without a prefix are torchrun's, which other libraries look for."""
        number, size = str(self.rank), str(self.size)
        local = number if self.local_rank is None else str(self.local_rank)
        environ = RunEnvironment.to_environ(self) | {
            "ORCALIKE_LISTEN": self.listen,
            "ORCALIKE_LOCAL_RANK": local,
            "ORCALIKE_RANK": number,
            "LOCAL_RANK": local,
            "LOCAL_WORLD_SIZE": str(self.local_size or self.size),
            "RANK": number,
            "WORLD_SIZE": size,
        }
        if self.listen_fd is not None:
            environ["ORCALIKE_LISTEN_FD"] = str(self.listen_fd)
        if self.unanimous:
            environ["ORCALIKE_UNANIMOUS"] = "1"
        return environ

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> RankEnvironment:
        """What `to_environ` has made; raises KeyError and ValueError if that is not so."""
        listen_fd = environ.get("ORCALIKE_LISTEN_FD")
        key_fd = environ.get("ORCALIKE_KEY_FD", "").partition(":")[0]
        return cls(
            rank=int(environ["ORCALIKE_RANK"]),
            size=int(environ["ORCALIKE_WORLD_SIZE"]),
            address=environ["ORCALIKE_ADDRESS"],
            sequencer=environ.get("ORCALIKE_SEQUENCER", "witness"),
            directory=environ["ORCALIKE_RUNTIME_DIR"],
            listen=environ["ORCALIKE_LISTEN"],
            listen_fd=int(listen_fd) if listen_fd else None,
            unanimous=environ.get("ORCALIKE_UNANIMOUS") == "1",
            seeds=tuple(environ["ORCALIKE_SEEDS"].split(",")),
            formed=find_formed(environ),
            job=environ.get("ORCALIKE_JOB_ID", ""),
            launcher=int(environ.get("ORCALIKE_LAUNCHER", "0")),
            seed=int(environ.get("ORCALIKE_SEED") or 0),
            restarts=int(environ.get("ORCALIKE_RESTART_COUNT", "0")),
            key_fd=int(key_fd) if key_fd.isdecimal() else None,
            stack=find_stack(environ),
            layers=find_layers(environ),
        )

    def wire_name(self, name: str) -> str:
        """How connections name the group of that name: an engine may run two jobs at the same addresses."""
        return f"{name} of job {self.job}" if self.unanimous and self.job else name

    @property
    def targets(self) -> tuple[str, ...]:
        """Where groups can be joined, the best first: this rank's own address is left out."""
        return tuple(seed for seed in self.seeds if seed != self.listen) or (self.listen,)

    @property
    def addresses(self) -> dict[int | None, str]:
        """Where each rank, and the witness (None), listens."""
        return _by_rank(self.seeds, self.size)

    def makes_group(self, name: str) -> bool:
        """Whether this rank makes the group; the others join it, and so does a rank that was started again."""
        return self._is_maker and not self.unanimous and name not in self.formed

    @property
    def may_make_group(self) -> bool:
        """Whether this rank makes each group, or joins it if it is there, by the word of all ranks."""
        return self._is_maker and self.unanimous

    @property
    def _is_maker(self) -> bool:
        return self.sequencer == "rank" and self.rank == 0


def find_rank_environment(environ: Mapping[str, str] = os.environ) -> RankEnvironment | None:
    """What the environment has; None in a process that was not launched, as a rank's child.

    Raises OrcalikeError if a rank is given and the rest is missing or makes no sense.
    """
    if "ORCALIKE_RANK" not in environ or is_ranks_child(environ):
        return None
    try:
        launch = RankEnvironment.from_environ(environ)
    except KeyError as error:
        raise OrcalikeError(f"ORCALIKE_RANK is set, but {error.args[0]} is not") from None
    except ValueError as error:
        raise OrcalikeError(f"what the launcher set makes no sense: {error}") from None
    if not 0 <= launch.rank < launch.size or launch.sequencer not in ("witness", "rank"):
        raise OrcalikeError(f"what the launcher set makes no sense: {launch}")
    return launch


def is_ranks_child(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a rank of a launched program has started this process, which is none."""
    return environ.get("ORCALIKE_RANK_PID", str(os.getpid())) != str(os.getpid())


def find_seeds(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Where any process of a launched program can join its groups, the best first.

    Raises KeyError if this process was not launched.
    """
    return tuple(environ["ORCALIKE_SEEDS"].split(","))


def find_addresses(environ: Mapping[str, str] = os.environ) -> dict[int | None, str]:
    """Where each rank of a launched program, and its witness (None), listens."""
    return _by_rank(find_seeds(environ), int(environ["ORCALIKE_WORLD_SIZE"]))


def _by_rank(seeds: tuple[str, ...], size: int) -> dict[int | None, str]:
    addresses: dict[int | None, str] = dict(enumerate(seeds[-size:]))
    return addresses | dict.fromkeys((None,)[: len(seeds) - size], seeds[0])


def find_ssh(environ: Mapping[str, str] = os.environ) -> str:
    """The command that reaches other hosts, words as in a shell."""
    return environ.get("ORCALIKE_SSH") or "ssh"


def find_layers(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The layers of the program's own, as `module:Class`."""
    return tuple(filter(None, environ.get("ORCALIKE_LAYERS", "").split(",")))


def find_stack(environ: Mapping[str, str] = os.environ) -> str:
    """The layers of a launched program's stacks, without their medium; "" for the default."""
    return environ.get("ORCALIKE_STACK", "")


def find_formed(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The names of the groups that were made before this process was started."""
    return frozenset(map(unquoted, filter(None, environ.get("ORCALIKE_FORMED", "").split(","))))


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


def find_detection(environ: Mapping[str, str] = os.environ) -> tuple[int | None, int]:
    """(detection time, slow_timeout) in ns, as the environment has them: seconds, or 500ms.

    The detection time is None if it is not set. Raises ValueError for what is no time.
    """
    slow = _nanoseconds("ORCALIKE_SLOW_TIMEOUT", environ)
    return _nanoseconds("ORCALIKE_DETECTION", environ), SLOW if slow is None else slow


def detection_at(address: str) -> int:
    """D, ns, of groups whose members are at addresses such as this, if nothing is set."""
    return DETECTION_OVER_TCP if address.startswith("tcp:") else DETECTION


def _nanoseconds(name: str, environ: Mapping[str, str]) -> int | None:
    text = environ.get(name, "")
    if not text:
        return None
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
    """The folder for histories, that `ORCALIKE_HISTORY` names; None if it is not set."""
    return environ.get("ORCALIKE_HISTORY") or None


def find_seed(name: str, environ: Mapping[str, str] = os.environ) -> int:
    """The seed of a group of that name, if this process makes it: drawn if none is given.

    Each group of a launched program has its own, from the run's (`orcalike run --seed`).
    """
    given = environ.get("ORCALIKE_SEED")
    if not given:
        return int.from_bytes(os.urandom(8), "big") >> 1
    return int.from_bytes(blake2b(f"{given} {name}".encode(), digest_size=7).digest(), "big")
