"""Writes without waiting, as much as the window allows, until the test calls "stop".

It tells how much was applied here; the entries themselves are not kept.
"""

from __future__ import annotations

import os
import sys

from common import KEY, called, meet, tell, wait_for
from objects import Tally

import orcalike as orca

SIZE = 500

how, address = sys.argv[1:]
joining = (
    orca.join(listen=address, key=KEY)
    if how == "make"
    else orca.join(seeds=address, timeout=60, key=KEY)
)
with joining as group:
    me = os.getpid()
    tell(address=group.address)
    tally = group.share(Tally, "tally")
    wait_for(lambda: group.size == 3, "three members")
    group.barrier()
    tell(ready=True)
    written = 0
    filling = b"x" * SIZE
    while not called("stop"):
        for _ in range(100):
            tally.add.nowait(me, filling)
            written += 1
    group.fence()
    group.barrier()
    meet("written", 3)
    tell(pid=me, written=written, counts=tally.all(), digest=group.digest())
    meet("facts printed", 3)
