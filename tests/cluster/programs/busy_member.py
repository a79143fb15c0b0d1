"""A member that writes hundreds at once, and again after PAUSE seconds, from when it is in until the test calls "stop".

`busy_member.py make ADDRESS`, `busy_member.py join ADDRESS...`, or `busy_member.py run` under `orcalike run`. One whose LEAVES is set leaves
when that is called. All have calls that wait for a gate, which rises now and then.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from common import KEY, STACK, called, meet, tell
from objects import Gate, Log

import orcalike as orca

logging.basicConfig(format="%(message)s")
HEIGHTS = range(1, 2001, 100)

how, *addresses = sys.argv[1:]
pause = float(os.environ.get("PAUSE", "0.1"))
leaves = os.environ.get("LEAVES", "never")
joining = (
    orca.join(listen=addresses[0], key=KEY, stack=STACK)
    if how == "make"
    else orca.join(seeds=addresses, timeout=60, key=KEY, stack=STACK)
    if how == "join"
    else orca.join()
)
with joining as group:
    me = os.getpid()
    tell(address=group.address, rank=group.rank, size=group.size)
    log, gate = group.share(Log, "log"), group.share(Gate, "gate")
    walks = [gate.walk.nowait(me, height) for height in HEIGHTS]
    written = 0
    while True:
        for _ in range(500):
            log.add.nowait(me, written)
            written += 1
        log.add(me, written)
        written += 1
        gate.raise_to.nowait(written // 500)
        time.sleep(pause)
        if called("stop") or called(leaves):
            break
    if called(leaves):
        tell(pid=me, written=written)
    else:
        gate.raise_to(max(HEIGHTS))
        for walk in walks:
            walk.result()
        group.barrier()
        remaining = group.size
        meet("written", remaining)
        tell(
            pid=me,
            written=written,
            digest=group.digest(),
            log=log.fingerprint(),
            visitors=gate.visitors(),
            members=[member.rank for member in group.members],
            writers={writer: len(log.numbers(writer)) for writer in log.writers()},
            disorder=log.disorder(),
        )
        meet("facts printed", remaining)
