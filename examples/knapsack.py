"""Search with a shared bound: the most valuable load of a truck, by branch and bound.

orcalike run -n 4 examples/knapsack.py
"""

import random

import orcalike as orca
from orcalike.objects import Maximum, Queue

DRAW = random.Random(4)
THINGS = [(DRAW.randint(20, 90), DRAW.randint(20, 90)) for _ in range(28)]  # weight, value
THINGS.sort(key=lambda thing: thing[1] / thing[0], reverse=True)


def search(best: Maximum[int], at: int, room: int, value: int) -> None:
    best.offer(value)  # sends something only if it is better than what is known here
    if at == len(THINGS) or value + room * THINGS[at][1] / THINGS[at][0] <= best.value:
        return  # no load that begins like this is better than the best known
    weight, worth = THINGS[at]
    if weight <= room:
        search(best, at + 1, room - weight, value + worth)
    search(best, at + 1, room, value)


if __name__ == "__main__":
    with orca.join() as group:
        best = group.share(Maximum[int], "best", 0)
        jobs = group.share(Queue[int], "jobs")
        if group.rank == 0:
            for job in range(2**6):  # its bits say which of the first six things are in
                jobs.put(job)
            jobs.shutdown()
        for job in jobs:
            chosen = [THINGS[bit] for bit in range(6) if job >> bit & 1]
            search(best, 6, 500 - sum(w for w, _ in chosen), sum(v for _, v in chosen))
        group.barrier()
        if group.rank == 0:
            print("the best load is worth", best.value)
