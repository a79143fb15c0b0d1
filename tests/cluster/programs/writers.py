"""Each rank writes to three logs, with and without waiting, and watches the others."""

from __future__ import annotations

import sys

from common import meet, tell
from objects import Log

import orcalike as orca

WRITES = int(sys.argv[1])
BURST = 50

with orca.join() as group:
    me = group.rank
    logs = [group.share(Log, f"log {number}") for number in range(3)]
    group.barrier()
    unseen = late = 0
    for number in range(WRITES):
        log = logs[number % 3]
        if number // BURST % 2:
            log.add(me, number)
            unseen += log.last(me) != number
        else:
            log.add.nowait(me, number)
        # What a member wrote later is never seen before what it wrote earlier to another object.
        other = (me + number) % group.size
        newer = logs[(number + 1) % 3].last(other)
        late += newer > 0 and logs[(newer - 1) % 3].last(other) < newer - 1
    group.fence()
    group.barrier()
    meet("written", group.size)
    count, digest = group.digest()
    tell(
        rank=me,
        count=count,
        digest=digest,
        unseen=unseen,
        late=late,
        disorder=[log.disorder() for log in logs],
        states=[log.fingerprint() for log in logs],
        missed=[
            writer
            for writer in range(group.size)
            for number, log in enumerate(logs)
            if log.numbers(writer) != list(range(number, WRITES, 3))
        ],
    )
    meet("facts printed", group.size)
