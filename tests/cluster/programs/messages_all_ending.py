"""A rank of a run with `--restart` that sends messages: all ranks end at once, and come back to the same group."""

from __future__ import annotations

import os
import signal
import time

from common import MEETINGS, meet, tell

from orcalike.messages import Data, join_group, leave_group, receive_from_group, send_to_group

RANKS, EACH = 2, 20

again = int(os.environ.get("ORCALIKE_RESTART_COUNT", "0"))
rank = int(os.environ["ORCALIKE_RANK"])
group = join_group("messages")
meet(f"joined{again}", RANKS)
for number in range(EACH):
    send_to_group(group, b"%d %d %d" % (again, rank, number))
found: list[bytes] = []
while len(found) < RANKS * EACH:
    match receive_from_group(group):
        case Data(_, data):
            found.append(bytes(data))
meet(f"sent{again}", RANKS)
if not again:
    if rank == 0:
        pids = [int(path.suffix[1:]) for path in MEETINGS.glob("sent0.*")]
        for pid in sorted(pids, key=lambda each: each == os.getpid()):
            os.kill(pid, signal.SIGKILL)
    time.sleep(60)  # until that comes
tell(rank=rank, lives=sorted({data.split()[0].decode() for data in found}), count=len(set(found)))
leave_group(group)
