"""The longest Collatz sequence that begins below 100,000; a program that starts its workers itself.

PYTHONHASHSEED=0 python examples/collatz.py
orcalike run -n 2 examples/collatz.py
"""

import orcalike as orca
from orcalike.objects import Maximum, Queue

WORKERS, END, STEP = 3, 100_000, 5_000


def length(n: int) -> int:
    steps = 1
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


@orca.register
def work(group: orca.Group, starts: Queue[int], longest: Maximum[tuple[int, int]]) -> None:
    for start in starts:
        longest.offer(max((length(n), n) for n in range(start, start + STEP)))


if __name__ == "__main__":
    with orca.join() as group:
        starts = group.share(Queue[int], "starts")
        longest = group.share(Maximum[tuple[int, int]], "longest", (1, 1))
        if group.rank == 0:
            for worker in range(WORKERS):  # on the ranks that there are, one after the other
                group.fork(work, starts, longest, on=worker % group.size)
            for start in range(END // 2, END, STEP):  # below: the double of each takes longer
                starts.put(start)
            starts.shutdown()
        work(group, starts, longest)  # the ranks, too: one that left at once could host no worker
    if group.rank == 0:  # the workers have ended: leaving the group waits for them
        print("{1} takes {0} steps".format(*longest.get()))
