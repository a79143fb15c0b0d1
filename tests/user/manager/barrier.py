"""Processes that meet, and a barrier that is broken."""

import threading
from multiprocessing import Process

from orcalike import Manager


def meet(barrier, before, after):
    before.append(1)
    place = barrier.wait()
    after.append((place, len(before)))


if __name__ == "__main__":
    with Manager() as manager:
        barrier, before, after = manager.Barrier(3), manager.list(), manager.list()
        children = [Process(target=meet, args=(barrier, before, after)) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        print(sorted(after), barrier.parties, barrier.n_waiting, barrier.broken)
        try:
            barrier.wait(0.02)
        except threading.BrokenBarrierError:
            print("broken", barrier.broken)
        barrier.reset()
        print(barrier.broken)

# [(0, 3), (1, 3), (2, 3)] 3 0 False
# broken True
# False
