"""A bounded buffer: ranks with even numbers produce, the others consume."""

from __future__ import annotations

import sys

from common import meet, tell
from objects import Buffer

import orcalike as orca

ITEMS, CAPACITY = int(sys.argv[1]), 3

with orca.join() as group:
    me = group.rank
    buffer = group.share(Buffer, "buffer", CAPACITY)
    got: list[tuple[int, int]] = []
    group.barrier()
    if me % 2 == 0:
        puts = [buffer.put.nowait(me, number) for number in range(0, ITEMS, 2)]
        for number in range(1, ITEMS, 2):
            buffer.put(me, number)
        for put in puts:
            put.result()
        meet("produced", group.size // 2)
        if me == 0:
            buffer.close()
    else:
        while (item := buffer.get(me)) is not None:
            got.append(item)
    group.barrier()
    meet("done", group.size)
    tell(
        rank=me,
        got=got,
        digest=group.digest(),
        wakes=buffer.fingerprint(),
        fullest=buffer.fullest(),
    )
    meet("facts printed", group.size)
