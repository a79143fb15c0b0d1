"""A rank that takes a lock and says so; the others wait for it, and say which token they have."""

from __future__ import annotations

import os
import sys
import time

from common import DEADLINE, tell

import orcalike as orca
from orcalike.objects import Election, Lock, Queue, Semaphore

with orca.join() as group:
    lock, semaphore = group.share(Lock, "lock"), group.share(Semaphore, "semaphore")
    queue, election = group.share(Queue[int], "queue"), group.share(Election, "election")
    held, ready = group.share(Queue[int], "held"), group.share(Queue[int], "ready")
    if group.rank == 0:
        assert semaphore.acquire()
        with election as term, lock as token:
            held.put(token)
            for _ in range(group.size - 1):
                ready.get()
            tell(rank=0, pid=os.getpid(), token=token, term=term)
            time.sleep(DEADLINE)  # killed meanwhile
            sys.exit("it was not killed")
    first = held.get()
    held.put(first)
    assert not semaphore.acquire(blocking=False)
    ready.put(group.rank)  # the holder is killed when all have come so far
    with lock as token:
        taken = queue.qsize()
        queue.put(token)
        assert queue.qsize() == taken + 1  # no other member is in here
    with election as term:
        pass
    tell(rank=group.rank, first=first, token=token, term=term, permit=semaphore.acquire())
    semaphore.release()
