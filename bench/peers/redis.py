"""Redis: a key in a server, by redis-py with its parser in C (hiredis), on a Unix socket.

The server neither saves nor logs. Writes that do not wait are pipelines without transactions.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

import redis

from orcalike.bench.harness import BenchError
from orcalike.bench.peers.answers import Measures, Team, each, running, serve, until
from orcalike.bench.peers.catalogue import redis_server

PIPELINE = 1000
"""Commands that are sent at once; more are not faster, and need memory at both ends."""

KEY = "counter"


def client(socket: str) -> redis.Redis:
    """A connection of its own: none is taken from a pool and given back for each command."""
    return redis.Redis(unix_socket_path=socket, single_connection_client=True)


def connect(_: int, socket: str) -> Callable[[int], None]:
    """The bursts of a member."""
    connection = client(socket)

    def burst(count: int) -> None:
        while count:
            pipeline = connection.pipeline(transaction=False)
            size = min(count, PIPELINE)
            for _ in repeat(None, size):
                pipeline.incrby(KEY, 1)
            pipeline.execute()
            count -= size

    return burst


def answers(socket: Path, server: subprocess.Popen[bytes]) -> bool:
    """Whether the server does. Raises BenchError if it has ended instead."""
    if server.poll() is not None:
        raise BenchError(f"redis-server ended with {server.returncode}")
    try:
        return bool(client(str(socket)).ping())
    except redis.ConnectionError:
        return False


@contextmanager
def opened() -> Iterator[Measures]:
    """The server, and all clients."""
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "redis"
        command = [redis_server(), "--port", "0", "--unixsocket", str(socket), "--dir", folder]
        quiet = ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
        with running([*command, *quiet], stdout=subprocess.DEVNULL) as server:
            until(lambda: answers(socket, server), "redis-server")
            team = Team(connect, str(socket))
            mine = connect(0, str(socket))
            team.ready()
            it = client(str(socket))
            it.set(KEY, 0)
            yield {
                "wait": lambda count: each(lambda: it.incrby(KEY, 1), count),
                "burst": lambda count: team.burst(mine, count),
                "read": lambda count: each(lambda: it.get(KEY), count),
            }


if __name__ == "__main__":
    serve(opened())
