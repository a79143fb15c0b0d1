"""A rank of a run whose forked processes are killed: those of all ranks with these, or those of one while it goes on.

Each rank forks a process, which forks another one. `KILLS` says what rank 0 kills when all of them are in.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from common import tell, wait_for

import orcalike as orca
from orcalike.objects import List

RANKS = 2
EACH = int(os.environ.get("EACH", "1"))
"""How many processes each rank forks."""


@orca.register
def work(group: orca.Group, pids: List[tuple[int | None, int]], forks: bool) -> None:
    """A forked process, which forks another one, and stays."""
    if forks:
        group.fork(work, pids, False)
    pids.append((None, os.getpid()))
    time.sleep(1000)


def kill(pids: Sequence[int]) -> None:
    """Kill these processes, this one last."""
    for pid in sorted(pids, key=lambda each: each == os.getpid()):
        os.kill(pid, signal.SIGKILL)


def main() -> None:
    """One life of a rank."""
    again = int(os.environ.get("ORCALIKE_RESTART_COUNT", "0"))
    kills = os.environ["KILLS"]
    with orca.join() as group:
        pids: List[tuple[int | None, int]] = group.share(List, "pids")
        if not again:
            pids.append((group.rank, os.getpid()))
            for _ in range(EACH):
                group.fork(work, pids, True)
            wait_for(lambda: len(pids) == RANKS * (1 + 2 * EACH), "all are there")
            time.sleep(
                2 * float(os.environ["BEATS_APART"])
            )  # so that they have leases by heartbeats
            if group.rank == 0:
                kill([pid for rank, pid in pids if (rank is None) == (kills == "forked")])
            if kills == "ranks":
                time.sleep(1000)  # until that comes
        group.barrier()
        wait_for(lambda: len(group.view.replicas) == RANKS, "the others are out")
        pids.append((group.rank, os.getpid()))
        tell(rank=group.rank, lives=again, written=len(pids) > RANKS * (1 + 2 * EACH))
        group.barrier()


if __name__ == "__main__":
    main()
