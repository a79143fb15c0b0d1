"""A member over TCP that the measurements start by itself, in an order: the first one orders.

    python bench/keyed_member.py make HOST MODE       prints its address
    python bench/keyed_member.py join ADDRESS MODE

MODE is the path of a key, or `insecure`. The stack has TOTAL: else members on one host share memory. A line of input is `wait COUNT`, answered with the seconds of a
write that this member waits for, or `burst COUNT`, with those of one of so many that it does not wait for.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import repeat

import orcalike as orca
from orcalike.bench.subjects import Shared
from orcalike.session.joining import Joining

STACK = "PACK:XFER:TOTAL:MBRSHIP:COM:tcp"


def join(how: str, place: str, mode: str) -> Joining:
    """The group, made or joined."""
    listen, seeds = (f"tcp:{place}:0", None) if how == "make" else (None, place)
    if mode == "insecure":
        return orca.join(listen=listen, seeds=seeds, insecure=True, stack=STACK)
    return orca.join(listen=listen, seeds=seeds, key=mode, stack=STACK)


def burst(shared: Shared, count: int) -> float:
    """Seconds of one of so many writes, until this member has applied them all."""
    began = time.monotonic()
    for _ in repeat(None, count - 1):
        shared.add.nowait(1)
    shared.add(1)
    return (time.monotonic() - began) / count


def wait(shared: Shared, count: int) -> float:
    """Seconds of one write that the caller waits for."""
    began = time.monotonic()
    for _ in repeat(None, count):
        shared.add(1)
    return (time.monotonic() - began) / count


def main() -> None:
    """Answer until the input ends."""
    how, place, mode = sys.argv[1:]
    with join(how, place, mode) as group:
        shared = group.share(Shared, "shared")
        print(json.dumps(group.address), flush=True)
        for line in sys.stdin:
            kind, count = line.split()
            print(repr((wait if kind == "wait" else burst)(shared, int(count))), flush=True)


if __name__ == "__main__":
    main()
