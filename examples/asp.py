"""All pairs shortest paths: a table of rows that each process writes a part of and all read.

    python examples/asp.py                               one process
    orcalike run -n 4 examples/asp.py                    four
    orcalike run -n 4 --keep-going examples/asp.py --cities 400 --seed 7

Floyd's algorithm goes through the cities k = 0, 1, ...; in step k a row of the matrix becomes
better by ways through city k, which takes nothing but row k as it stood before the step. So the
rows are split among the processes, and the owner of row k puts it into the shared table before
step k: one ordered write, that every other process waits for in its own replica.

A process may die at any time: the table knows which are left, and which of them puts the rows that
the dead have not put. All that takes is in the table: the rows of the steps before.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time

import orcalike as orca

FAR = 10**12  # no way: more than any way can cost, and adding two of them does no harm
Row = list[int]
Rank = int | None


@orca.shared
class Rows:
    """Rows as they are before a step, each put once, and which process is to put which."""

    def __init__(self, cities: int) -> None:
        self.cities = cities
        self.rows: dict[tuple[int, int], Row] = {}  # by number and step
        self.ranks: list[Rank] = []  # that the rows were split among
        self.present: dict[Rank, int] = {}  # by the rank of each that is there: its incarnation
        self.gone: set[int] = set()
        self.reported = False

    @orca.write
    def split(self, members: tuple[orca.Member, ...]) -> list[Rank]:
        """The ranks that share the rows; each process names all, and the first in the order counts."""
        if not self.ranks:
            self.ranks = [member.rank for member in members]
            self.present = {
                member.rank: member.incarnation
                for member in members
                if member.incarnation not in self.gone
            }
        return self.ranks

    def member_joined(self, member: orca.Member) -> None:
        """A rank that was started again is there for its rows as it was before."""
        if member.rank in self.ranks:
            self.present[member.rank] = member.incarnation

    def member_left(self, member: orca.Member) -> None:
        """A member that dies leaves its rows to the others."""
        self.gone.add(member.incarnation)
        if self.present.get(member.rank) == member.incarnation:
            del self.present[member.rank]

    @orca.write
    def put(self, number: int, step: int, row: Row) -> None:
        self.rows[number, step] = row  # each that computes it gets the same

    @orca.read
    def get(self, number: int, step: int, rank: Rank) -> Row | None:
        """The row, to be looked at and not changed: it is the replica's own.

        None if this rank is to put it.
        """
        return self.rows.get((number, step))

    @get.when
    def _(self, number: int, step: int, rank: Rank) -> bool:
        # A guarded read waits here, and sends nothing.
        return (number, step) in self.rows or self._rank_for(number) == rank

    def _rank_for(self, number: int) -> Rank:
        """The rank to which a row belongs, or, if that is gone, one of those that are left."""
        owner = self.ranks[number * len(self.ranks) // self.cities]
        left = self._left()
        return owner if owner in left or not left else left[number % len(left)]

    def _left(self) -> list[Rank]:
        return [rank for rank in self.ranks if rank in self.present]

    @orca.write
    def is_to_report(self, rank: Rank) -> bool:
        """Whether this rank reports the answer: the first one that is left does, once."""
        reported, self.reported = self.reported, True
        return not reported

    @is_to_report.when
    def _(self, rank: Rank) -> bool:
        return self.reported or rank in self._left()[:1]


def improved(row: Row, k: int, through: Row) -> Row:
    """A row with the ways through city k, if they are shorter."""
    to_k = row[k]
    if to_k == FAR:
        return row
    return [
        old if old <= (new := to_k + onwards) else new
        for old, onwards in zip(row, through, strict=True)
    ]


def serial(graph: list[Row]) -> list[Row]:
    """The answer as one process computes it, without orcalike."""
    rows = graph
    for k in range(len(rows)):
        through = rows[k]
        rows = [improved(row, k, through) for row in rows]
    return rows


def shared(rank: Rank, ranks: list[Rank], table: Rows, graph: list[Row]) -> list[Row]:
    """The answer as the group computes it; each process gets all of it."""
    size = len(graph)
    # A block of neighbours: their owner goes from one to the next without waiting for others.
    mine = {n: row for n, row in enumerate(graph) if ranks[n * len(ranks) // size] == rank}
    steps: list[Row] = []  # row k as it is before step k

    def caught_up(number: int) -> Row:
        """A row of a process that is gone, from the beginning to the step that is reached."""
        row = graph[number]
        for k, through in enumerate(steps):
            row = improved(row, k, through)
        return row

    for k in range(size):
        through = table.get(k, k, rank)
        if through is None:
            through = mine[k] = mine[k] if k in mine else caught_up(k)
            table.put.nowait(k, k, through)
        steps.append(through)
        mine = {number: improved(row, k, through) for number, row in mine.items()}
    for number, row in mine.items():
        table.put.nowait(number, size, row)
    for number in range(size):
        if number not in mine:
            last = table.get(number, size, rank)
            if last is None:
                last = caught_up(number)
                table.put.nowait(number, size, last)
            mine[number] = last
    return [mine[number] for number in range(size)]


def random_graph(cities: int, seed: int) -> list[Row]:
    """Roads of random cost, one way each, from a city to one in ten others."""
    roads = random.Random(seed)
    return [
        [
            0 if there == here else roads.randint(1, 1000) if roads.random() < 0.1 else FAR
            for there in range(cities)
        ]
        for here in range(cities)
    ]


def digest(rows: list[Row]) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description="Finds all shortest paths of a random graph.")
    parser.add_argument("--cities", type=int, default=300, help="its size (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the graph (default: 1)")
    options = parser.parse_args()
    if options.cities < 1:
        parser.error("--cities takes a number from 1 on")
    graph = random_graph(options.cities, options.seed)
    with orca.join() as group:
        table = group.share(Rows, "rows", options.cities)
        ranks = table.split(group.members)
        if group.rank == 0:
            print(f"{options.cities} cities, {len(ranks)} processes", flush=True)
        started = time.perf_counter()
        rows = shared(group.rank, ranks, table, graph)
        seconds = time.perf_counter() - started
        group.barrier()  # so that the serial run below has the machine to itself
        if not table.is_to_report(group.rank):
            return
        started = time.perf_counter()
        expected = serial(graph)
        alone = time.perf_counter() - started
        print(f"time: {seconds:.2f} s, serial {alone:.2f} s")
        print(f"digest: {digest(rows)[:16]}, serial {digest(expected)[:16]}")
        if digest(rows) != digest(expected):
            sys.exit("check: FAILED, the answer differs from the serial one")
        print("check: ok, equal to the serial answer, bit for bit")


if __name__ == "__main__":
    main()
