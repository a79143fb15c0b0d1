"""A member that waits in many ways while another one is killed: every call must end.

`survivor.py make|join ADDRESS victim|other`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time

from common import called, meet, tell, wait_for
from objects import Gate, Log

import orcalike as orca

logging.basicConfig(format="%(message)s")


def caught(name: str, function: object, *args: object) -> None:
    """Tell what a call raised, and how it named whom."""
    began = time.monotonic()
    try:
        assert callable(function)
        function(*args)
        tell(call=name, error=None)
    except orca.OrcalikeError as error:
        took = time.monotonic() - began
        tell(call=name, error=type(error).__name__, text=str(error), took=took)


def in_threads(group: orca.Group, log: Log, gate: Gate) -> None:
    """Calls that are waiting when the member is lost, then calls that come later."""
    waiting = {
        "guard": lambda: gate.walk(0, 10),
        "read guard": lambda: gate.above(10),
        "barrier": group.barrier,
        "find": lambda: group.find(Log, "nowhere"),
        "nowait": gate.walk.nowait(0, 11).result,
        "loop": lambda: asyncio.run(waiting_coroutine(gate)),
    }
    threads = [threading.Thread(target=caught, args=item) for item in waiting.items()]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    tell(ready=True)
    for thread in threads:
        thread.join()
    for name, later in {
        "write": lambda: log.add(1, 1),
        "write nowait": lambda: log.add.nowait(1, 1).result(),
        "fence": group.fence,
        "share": lambda: group.share(Log, "another"),
        "drop": lambda: group.drop(log),
        "later guard": lambda: gate.walk(0, 1),
    }.items():
        caught(name, later)
    tell(read=log.last(0))


async def waiting_coroutine(gate: Gate) -> None:
    await gate.walk.aio(0, 12)


how, where, role = sys.argv[1:]
joining = orca.join(listen=where) if how == "make" else orca.join(seeds=where, timeout=20)
with joining as group:
    log, gate = group.share(Log, "log"), group.share(Gate, "gate")
    log.add(0, 7)
    tell(address=group.address, rank=group.rank)
    if role == "victim":
        wait_for(lambda: called("never"), "its end")
    wait_for(lambda: group.size == 3, "three members")
    in_threads(group, log, gate)
    meet("told", 2)  # who goes now is another lost member for those who have not heard yet
tell(left=True)
