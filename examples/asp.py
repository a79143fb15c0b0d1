"""All pairs shortest paths: a table of rows that each process writes a part of and all read.

    python examples/asp.py                               one process
    orcalike run -n 4 examples/asp.py                    four
    orcalike run -n 4 examples/asp.py --cities 400 --seed 7

Floyd's algorithm goes through the cities k = 0, 1, ...; in step k a row of the matrix becomes
better by ways through city k, which takes nothing but row k as it stood before the step. So the
rows are split among the processes, and the owner of row k puts it into the shared table before
step k: one ordered write, that every other process waits for in its own replica.
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


@orca.shared
class Rows:
    """A table of rows, each put once."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    @orca.write
    def put(self, number: int, row: Row) -> None:
        self.rows[number] = row

    @orca.read
    def get(self, number: int) -> Row:
        """The row, to be looked at and not changed: it is the replica's own."""
        return self.rows[number]

    @get.when
    def _(self, number: int) -> bool:
        return number in self.rows  # a guarded read waits here, and sends nothing


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


def shared(group: orca.Group, graph: list[Row]) -> list[Row]:
    """The answer as the group computes it; each process gets all of it."""
    steps = group.share(Rows, "steps")  # row k as it is before step k
    answer = group.share(Rows, "answer")
    size = len(graph)
    # A block of neighbours: their owner goes from one to the next without waiting for others.
    block = range(group.rank * size // group.size, (group.rank + 1) * size // group.size)
    mine = {number: graph[number] for number in block}
    for k in range(size):
        if k in mine:
            steps.put.nowait(k, mine[k])
        through = mine[k] if k in mine else steps.get(k)
        mine = {number: improved(row, k, through) for number, row in mine.items()}
    for number, row in mine.items():
        answer.put.nowait(number, row)
    return [answer.get(number) for number in range(size)]


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
        if group.rank == 0:
            print(f"{options.cities} cities, {group.size} processes", flush=True)
        group.barrier()
        started = time.perf_counter()
        rows = shared(group, graph)
        seconds = time.perf_counter() - started
        group.barrier()  # so that the serial run below has the machine to itself
        if group.rank != 0:
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
