"""redis-py over TCP, by its parser in C: `redis_client.py HOST PORT`, for a server that is started elsewhere.

A line of input is `wait COUNT`, answered with the seconds of one write.
"""

from __future__ import annotations

import sys
import time

import redis

from orcalike.bench.peers.answers import each, until


def answers(client: redis.Redis) -> bool:
    """Whether the server does."""
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        time.sleep(0.05)
        return False


def main() -> None:
    """Answer until the input ends."""
    client = redis.Redis(sys.argv[1], int(sys.argv[2]), single_connection_client=False)
    until(lambda: answers(client), "redis-server")
    client = redis.Redis(sys.argv[1], int(sys.argv[2]), single_connection_client=True)
    for line in sys.stdin:
        print(repr(each(lambda: client.incrby("counter", 1), int(line.split()[1]))), flush=True)


if __name__ == "__main__":
    main()
