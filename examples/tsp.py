"""The travelling salesman by branch and bound: a job queue and a minimum that all processes share.

    python examples/tsp.py                               one process
    orcalike run -n 4 examples/tsp.py                    four
    orcalike run -n 4 examples/tsp.py FILE.tsp           a TSPLIB instance
    orcalike run -n 4 examples/tsp.py --cities 28 --seed 1

A job is the beginning of a tour. The queue is filled with all jobs, and every process takes jobs and
tries all ways to finish them, except those that a bound shows to be no shorter than the best tour
known to any process. That bound is read a million times, from the process's own replica, and
written a dozen times: what shared objects are for.

A process may die at any time: the queue knows which process has which job, and hands out again what
the dead have not finished. One that is started again takes jobs as if it had always been there.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from tsplib import Instance, TsplibError, random_instance, read

import orcalike as orca

DEPTH = 4  # cities in a job's beginning: enough jobs that no process ends long before the others
KEPT = 1_000_000  # trees and ways that a process remembers: some hundred megabytes at most
Tour = tuple[int, ...]


@orca.shared
class JobQueue:
    """Hands each job to one process, in their order, and again if that process dies."""

    def __init__(self) -> None:
        self.jobs: list[Tour] = []  # the next one last
        self.taken: dict[int, Tour] = {}  # by the incarnation of the member that has it
        self.gone: set[int] = set()
        self.total = 0

    @orca.write
    def fill(self, jobs: list[Tour]) -> None:
        """All jobs there are; each process says the same, and the first in the order counts."""
        if not self.total:
            self.jobs = jobs[::-1]
            self.total = len(jobs)

    @orca.write
    def get(self, taker: int) -> Tour | None:
        """The next job; None when all are done, and for the dead, whose last words may come late."""
        if not self.jobs or taker in self.gone:
            return None
        self.taken[taker] = self.jobs.pop()
        return self.taken[taker]

    @get.when
    def _(self, taker: int) -> bool:
        return bool(self.jobs) or (self.total > 0 and not self.taken)

    @orca.write
    def done(self, taker: int) -> None:
        """The job that this member has is finished."""
        self.taken.pop(taker, None)

    def member_left(self, member: orca.Member) -> None:
        """A member that dies leaves its job to the others."""
        self.gone.add(member.incarnation)
        if member.incarnation in self.taken:
            self.jobs.append(self.taken.pop(member.incarnation))

    @orca.read
    def is_filled(self) -> bool:
        return self.total > 0

    @orca.read
    def progress(self) -> tuple[int, int]:
        return self.total - len(self.jobs), self.total


@orca.shared
class Minimum:
    """The shortest tour known to any process, and its length."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.tour: Tour = ()

    @orca.read
    def get(self) -> int:
        return self.value

    @orca.read
    def holder(self) -> Tour:
        return self.tour

    @orca.write
    def lower(self, value: int, tour: Tour) -> bool:
        """Whether this tour is shorter: another process's may have come first in the order."""
        if value >= self.value:
            return False
        self.value, self.tour = value, tour
        return True


@orca.shared
class Tally:
    """What all processes did, for the rates at the end; and that one of them has reported it."""

    def __init__(self) -> None:
        self.reads = 0
        self.writes = 0
        self.reported = False

    @orca.write
    def add(self, reads: int, writes: int) -> None:
        self.reads += reads
        self.writes += writes

    @orca.write
    def tell(self) -> bool:
        """Whether it is still to be reported."""
        reported, self.reported = self.reported, True
        return not reported

    @orca.read
    def get(self) -> tuple[int, int]:
        return self.reads, self.writes


class Search:
    """One process's part of the search.

    City 0 begins each tour, and a set of cities is a bit mask. A tour can be walked in two
    directions: only the one that visits city 1 before city 2 is looked at.
    """

    def __init__(self, distances: list[list[int]], best: Minimum, rank: int) -> None:
        self.distances = distances
        self.best = best
        self.rank = rank
        self.reads = self.writes = 0
        self.started = time.perf_counter()
        cities = range(len(distances))
        self.nearest = [sorted((row[city], city) for city in cities) for row in distances]
        # The same sets come up again and again, in other orders of the cities before them.
        self.tree = lru_cache(maxsize=KEPT)(self.spanning_tree)
        self.shortest: dict[tuple[int, int], int] = {}  # ways, by what is left and the last city

    def spanning_tree(self, cities: int) -> int:
        """The weight of the lightest tree that connects a set of cities (Prim's algorithm).

        The rest of a tour is a path through the cities that are left, and a path is a tree: so
        it is no shorter than this.
        """
        reach = {c: sys.maxsize for c in range(len(self.distances)) if cities >> c & 1}
        at, _ = reach.popitem()
        weight = 0
        while reach:
            row = self.distances[at]
            for city, shortest in reach.items():
                if row[city] < shortest:
                    reach[city] = row[city]
            at = min(reach, key=reach.__getitem__)
            weight += reach.pop(at)
        return weight

    def jobs(self) -> list[Tour]:
        """All beginnings of tours, the most promising first: a short tour early spares most."""
        everything = (1 << len(self.distances)) - 2
        beginnings: list[tuple[int, Tour, int]] = [(0, (0,), everything)]
        for _ in range(min(DEPTH, len(self.distances)) - 1):
            beginnings = [
                (length + step, (*tour, city), rest ^ 1 << city)
                for length, tour, rest in beginnings
                for step, city in self.nearest[tour[-1]]
                if rest >> city & 1 and not (city == 2 and rest & 2)
            ]
        bounds = [
            (length + self.tree(rest | 1 | 1 << tour[-1]), tour)
            for length, tour, rest in beginnings
        ]
        return [tour for _, tour in sorted(bounds)]

    def finish(self, job: Tour) -> None:
        """Tries all ways to finish a job."""
        rest = (1 << len(self.distances)) - 1
        for city in job:
            rest ^= 1 << city
        self.extend(job, rest, sum(self.distances[a][b] for a, b in pairwise(job)))

    def extend(self, tour: Tour, rest: int, length: int) -> None:
        """Tries all ways from the end of a beginning through the rest of the cities, and home."""
        if not rest:
            self.offer(tour, length + self.distances[tour[-1]][0])
            return
        # Another way through the same cities to the last one was tried, and was no longer?
        way = rest, tour[-1]
        if length >= self.shortest.get(way, sys.maxsize):
            return
        if len(self.shortest) < KEPT:
            self.shortest[way] = length
        # Whichever city comes next, the way from there home leads through all that is left.
        onwards = length + self.tree(rest | 1)
        best = self.best
        for step, city in self.nearest[tour[-1]]:
            if rest >> city & 1 and not (city == 2 and rest & 2):
                self.reads += 1
                if onwards + step >= best.get():
                    break  # the cities after this one are farther
                self.extend((*tour, city), rest ^ 1 << city, length + step)

    def offer(self, tour: Tour, length: int) -> None:
        """Makes a whole tour the best one, if it is."""
        self.reads += 1
        if length < self.best.get():
            self.writes += 1
            if self.best.lower(length, tour):
                seconds = time.perf_counter() - self.started
                say(f"{seconds:7.2f} s  rank {self.rank} found a tour of {length}")


def say(line: str) -> None:
    print(line, flush=True)


def run(instance: Instance) -> bool:
    """Solves an instance with the whole group; whether the answer stood its check."""
    with orca.join() as group:
        queue = group.share(JobQueue, "jobs")
        best = group.share(Minimum, "best", sys.maxsize)
        tally = group.share(Tally, "tally")
        me = group.me.incarnation
        search = Search(instance.distances, best, group.rank)
        if group.rank == 0:
            say(f"{instance.name}: {len(instance.cities)} cities, {group.size} processes")
        if not queue.is_filled():
            queue.fill(search.jobs())
        report_at = 1.0
        while (job := queue.get(me)) is not None:
            search.finish(job)
            queue.done.nowait(me)  # the order is kept: what was found is known before
            search.writes += 2
            seconds = time.perf_counter() - search.started
            if group.rank == 0 and seconds >= report_at:
                taken, total = queue.progress()
                say(f"{seconds:7.2f} s  {taken} of {total} jobs taken")
                report_at = seconds + 1
        # All jobs are done, and each worker reported its tours before: the best is the optimum.
        seconds = time.perf_counter() - search.started
        tally.add(search.reads, search.writes)
        group.barrier()
        return not tally.tell() or summary(instance, best, tally, seconds)


def summary(instance: Instance, best: Minimum, tally: Tally, seconds: float) -> bool:
    """Prints the result and its check; whether that is well."""
    length, tour = best.get(), best.holder()
    reads, writes = tally.get()
    say(f"tour: {' - '.join(instance.cities[city] for city in tour)}")
    say(f"length: {length}")
    say(f"time: {seconds:.2f} s")
    say(f"rates: {reads / seconds:,.0f} reads/s, {writes / seconds:,.0f} writes/s")
    added = sum(instance.distances[a][b] for a, b in pairwise((*tour, tour[0])))
    if sorted(tour) != list(range(len(instance.cities))) or added != length:
        say(f"check: FAILED, the tour visits {len(tour)} cities and its steps add up to {added}")
        return False
    if instance.optimum not in (None, length):
        say(f"check: FAILED, the file tells an optimum of {instance.optimum}")
        return False
    known = "" if instance.optimum is None else ", as the file tells"
    say(f"check: ok, each city once, the steps add up, optimal{known}")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description="Solves a travelling salesman problem.")
    parser.add_argument("file", nargs="?", help="a TSPLIB file (default: the Silk Road)")
    parser.add_argument("--cities", type=int, help="a random instance of so many cities instead")
    parser.add_argument("--seed", type=int, default=1, help="of the random instance (default: 1)")
    options = parser.parse_args()
    if options.cities is not None and (options.cities < 1 or options.file):
        parser.error("--cities takes a number from 1 on, and no file beside it")
    try:
        instance = (
            random_instance(options.cities, options.seed)
            if options.cities
            else read(options.file or Path(__file__).with_name("silkroad.tsp"))
        )
    except (OSError, TsplibError) as error:
        sys.exit(f"tsp.py: {error}")
    if not run(instance):
        sys.exit(1)


if __name__ == "__main__":
    main()
