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
    the others; a set is complete before any set of more cities looks at it.
    """
    if len(distances) == 1:
        return 0
    steps = np.array(distances, dtype=np.int32)
    others = len(distances) - 1
    sets = np.arange(1 << others, dtype=np.uint32)
    sizes = sum((sets >> city & 1 for city in range(others)), np.zeros_like(sets))
    # Far enough for no path, and near enough that one more step does not overflow.
    length = np.full((1 << others, others), 1 << 30, dtype=np.int32)
    for city in range(others):
        length[1 << city, city] = steps[others, city]
    for size in range(1, others):
        of_size: NDArray[np.uint32] = sets[sizes == size]
        for city in range(others):
            before = of_size[of_size >> city & 1 == 0]
            paths = length[before] + steps[:others, city]
            length[before | 1 << city, city] = paths.min(axis=1)
    return int((length[-1] + steps[:others, others]).min())


if __name__ == "__main__":
    print(shortest_tour(read(sys.argv[1]).distances))
