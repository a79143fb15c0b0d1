"""Averaging of a NumPy vector: each process fits a line to its own points, all take the mean.

orcalike run -n 4 examples/averaging.py
"""

import numpy as np

import orcalike as orca
from orcalike.objects import Array

STEPS, RATE = 60, 0.5
TRUTH = np.array([3.0, -2.0])

if __name__ == "__main__":
    with orca.join() as group:
        draw = np.random.default_rng(group.rank)
        points = np.column_stack([draw.uniform(-1, 1, 500), np.ones(500)])
        heights = points @ TRUTH + draw.normal(0, 0.1, 500)
        sums = [group.share(Array, f"sum {turn}", np.zeros(2)) for turn in range(2)]
        weights = np.zeros(2)
        for step in range(STEPS):
            gradient = points.T @ (points @ weights - heights) / len(points)
            mine, other = sums[step % 2], sums[1 - step % 2]
            mine.add(gradient)
            group.barrier()  # all have added theirs
            weights -= RATE * mine[...] / group.size  # the same at each process
            if group.rank == 0:
                other.set(0.0)  # of the step before, and of the next one
            group.barrier()
        if group.rank == 0:
            print("found", np.round(weights, 1), "close:", np.allclose(weights, TRUTH, atol=0.05))
