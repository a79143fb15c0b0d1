"""What a launcher's variables say about the processes that it has started, and how they can meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orcalike.errors import OrcalikeError
from orcalike.transport.record import Record

SIZE_MAX = 1 << 20
"""Processes that a launcher can be believed to have started."""


def _nowhere(host: str) -> str:
    """What a launcher says of a host that it does not know."""
    return ""


class AtFirstHost(Record):
    """Rank 0 listens at one of a few ports of its host, which all know; the others ask there."""

    host: str
    """Its name, or its number."""
    others: tuple[str, ...] = ()
    """Some other hosts of the world: towards one of these each process has its own address."""
    ask: Callable[[str], str] = staticmethod(_nowhere)
    """Where a host is by the launcher's word, if its name is not known otherwise; "" for nowhere."""


class AtNames(Record):
    """Each rank listens at a name and a port of its own."""

    addresses: tuple[str, ...]


class ByExchange(Record):
    """The launcher passes texts among its processes, by the protocol of that name: "pmi" or "pmix"."""

    protocol: str


class World(Record, kw_only=True):
    """The processes of one job, this one among them."""

    launcher: str
    """The command that users know."""
    rank: int
    size: int
    job: str
    """What only the processes of this job have, all of them; "" if an exchange must say it."""
    meets: AtFirstHost | AtNames | ByExchange
    local_rank: int = 0
    local_size: int = 1
    """Of the processes on this host; `local_size == size` only if all certainly are on one."""
    restarts: int = 0
    sign: str = ""
    """What tells the world from others within this host, if `job` is not known yet."""

    @property
    def is_on_one_host(self) -> bool:
        """Whether all processes certainly are on this host."""
        return self.local_size == self.size

    @property
    def mark(self) -> str:
        """What a process that a rank has started recognises its parent's world by."""
        return f"{self.launcher} {self.job or self.sign} {self.rank}/{self.size}"


def number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    """A variable that is a number, 0 or more; raises OrcalikeError for anything else."""
    text = environ.get(name, "")
    if not text and default is not None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) > SIZE_MAX:
        raise OrcalikeError(f"{name}={text!r}, which a launcher has set, is no number")
    return int(text)


def rank_and_size(environ: Mapping[str, str], rank: str, size: str) -> tuple[int, int]:
    """(rank, size) by the variables of these names; raises OrcalikeError if they make no sense."""
    found = number(environ, rank), number(environ, size)
    if found[0] >= found[1]:
        raise OrcalikeError(f"{rank}={found[0]} and {size}={found[1]} contradict each other")
    return found
