"""A rank of a run with `--restart`, and much state: each but the first is killed once.

Each tells of its acknowledged writes in a file; the first compares in the end.
"""

from __future__ import annotations

import json
import os
import signal

from common import MEETINGS, call, called, wait_for
from objects import Box, Tally

import orcalike as orca

MiB = 1 << 20
EACH = 200


with orca.join(resilience=int(os.environ["DEGREE"])) as group:
    rank = group.rank
    assert rank is not None
    again = int(os.environ.get("ORCALIKE_RESTART_COUNT", "0"))
    if rank == 0:
        for i in range(17):
            group.share(Box, f"box {i}", b"x" * MiB)
        call("boxes made")
    wait_for(lambda: called("boxes made"), "the boxes")
    group.fence()
    boxes = [group.find(Box, f"box {i}") for i in range(17)]
    tally = group.share(Tally, "tally")
    file = MEETINGS / f"acknowledged.{rank}"
    last = int(file.read_text()) if file.exists() else 0
    for number in range(EACH):
        count = tally.add(rank)
        assert count > last, f"{last} was acknowledged, and now it is {count}"
        last = count
        file.write_text(str(count))
        if number == EACH // 2 and not again and rank:
            if rank > 1:
                wait_for(lambda: called(f"back.{rank - 1}"), "the one before is back")
            os.kill(os.getpid(), signal.SIGKILL)
    if again:
        call(f"back.{rank}")
    wait_for(lambda: called("back.2"), "all are back")
    call(f"done.{rank}")
    wait_for(lambda: all(called(f"done.{rank}") for rank in range(3)), "all have written")
    if rank == 0:
        group.fence()
        acknowledged = {r: int((MEETINGS / f"acknowledged.{r}").read_text()) for r in range(3)}
        sizes = {box.get() for box in boxes}
        print(
            json.dumps({"acknowledged": acknowledged, "found": tally.all(), "sizes": list(sizes)})
        )
        call("compared")
    wait_for(lambda: called("compared"), "the first has compared")
