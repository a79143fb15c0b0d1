"""`now()`, `random()`, `caller()` and `position()`: the same at each replica, inside an operation.

A read belongs to one process: there the clock is the group's as it is in this moment, and the random
numbers are the process's own. Outside of any operation, as in the unit test of a class that is not
shared, they are the wall clock, fresh random numbers, a member that stands for this process, and 0.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from orcalike.runtime.running import running_call, running_place
from orcalike.transport.view import Member

if TYPE_CHECKING:
    from random import Random

_ALONE = Member("", 0, 0)


def now() -> float:
    """Seconds since the epoch, by the clock of the member that orders: the sequencer, or in shared memory the writer.

    In a write it is the time at which the write was ordered, which never goes back. In a read it is
    the time now, as far as this process knows that clock; never less than in any write before it.
    """
    place = running_place()
    if place is None:
        return time.time()
    _, _, _, stamp = place
    return float(stamp / 1e9)


def random() -> Random:
    """A generator seeded by the group's seed and the place in the order; one throughout an operation."""
    from random import Random  # few programs draw

    place = running_place()
    if place is None:
        return Random()
    replica, seqno, index, _ = place
    if seqno < 0:
        return replica.rng_of_reads
    key = (seqno, index)
    if replica.rng is None or replica.rng[0] != key:
        replica.rng = (key, Random(f"{replica.seed} {seqno} {index} {replica.number}"))
    rng: Random = replica.rng[1]
    return rng


def caller() -> Member:
    """The member that called the operation that runs; a read's is this member.

    Outside of any operation it is a member without an address, of rank 0. Raises RuntimeError in
    `member_left` and `member_joined`, which no member calls.
    """
    call = running_call()
    if call is None:
        return _ALONE
    if call[0] is None:
        raise RuntimeError("caller() in a hook: no member has called it")
    return call[0]


def position() -> int:
    """The position in the order of the call that runs: one number, larger for each later call.

    0 outside of any operation. A call that has waited for its guard keeps the position at which it
    was ordered. Raises RuntimeError in a read, which has none, and in a hook.
    """
    call = running_call()
    if call is None:
        return 0
    sender, seqno, index = call
    if sender is None or seqno is None or index is None:
        raise RuntimeError("position() in a read or a hook, which has none in the order of calls")
    return seqno << 32 | index
