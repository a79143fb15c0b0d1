"""The shortest tour's length by Held and Karp's dynamic program: no bound, no branching, no luck.

    PYTHONPATH=examples python tests/user/held_karp.py examples/silkroad.tsp

It proves the optimum that an instance tells, by a way that shares nothing with `tsp.py` but the
reader. Time and memory double with each city: 21 take some seconds and 200 MB.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from tsplib import read


def shortest_tour(distances: list[list[int]]) -> int:
    """The length of the shortest tour (Held and Karp 1962).

    `length[cities, last]` is that of the shortest path from home through all of a set of cities
    to the last of them. Home is the city with the highest number, so that sets are bit masks of
    the others; a set is complete before any set of more cities looks at it. A tour is two paths
    that meet halfway, so that paths through more than half of the cities need not be known.
    """
    if len(distances) <= 2:
        return sum(map(sum, distances))
    steps = np.array(distances, dtype=np.int32)
    others = len(distances) - 1
    sets = np.arange(1 << others, dtype=np.uint32)
    sizes = sum((sets >> city & 1 for city in range(others)), np.zeros_like(sets))
    # Far enough for no path, and near enough that one more step does not overflow.
    length = np.full((1 << others, others), 1 << 30, dtype=np.int32)
    for city in range(others):
        length[1 << city, city] = steps[others, city]
    half = others // 2

    def one_more(size: int, city: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The sets of a size without a city, and the paths through them and on to that city."""
        before = by_size[size][by_size[size] >> city & 1 == 0]
        return before, (length[before] + steps[:others, city]).min(axis=1)

    by_size: list[NDArray[np.uint32]] = [sets[sizes == size] for size in range(half + 1)]
    for size in range(1, others - half):
        for city in range(others):
            before, paths = one_more(size, city)
            length[before | 1 << city, city] = paths
    shortest = 1 << 30
    for city in range(others):
        before, paths = one_more(half, city)
        back = length[sets[-1] ^ before, city]  # from home through the rest, to that city too
        shortest = min(shortest, int((paths + back).min()))
    return shortest


if __name__ == "__main__":
    print(shortest_tour(read(sys.argv[1]).distances))
