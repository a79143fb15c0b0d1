"""`now()` and `random()`: the same at each replica, inside an operation (DESIGN, Declaring).

Outside of any operation, as in the unit test of a class that nobody shared, they are the wall clock
and fresh dice.
"""

from __future__ import annotations

import time
from random import Random

from orcalike.runtime.dispatch import running_place


def now() -> float:
    """Seconds since the epoch: the sequencer's clock at this place in the order, never going back."""
    place = running_place()
    if place is None:
        return time.time()
    _, _, _, stamp = place
    return float(stamp / 1e9)


def random() -> Random:
    """Dice that are seeded by the place in the order; the same ones throughout one operation."""
    place = running_place()
    if place is None:
        return Random()
    replica, seqno, index, _ = place
    key = (seqno, index)
    if replica.dice is None or replica.dice[0] != key:
        replica.dice = (key, Random(f"{seqno} {index} {replica.number}"))
    dice: Random = replica.dice[1]
    return dice
