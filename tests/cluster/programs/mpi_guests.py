"""Ranks of an MPI program that meet by one broadcast; MPI is used before, meanwhile and afterwards.

`comm.allreduce` is not among its calls: that of mpi4py 4.1 keeps the interpreter's lock while it waits.
"""

from __future__ import annotations

import contextlib
import tempfile

from common import tell
from mpi4py import MPI

import orcalike as orca
from orcalike.objects import Counter

comm = MPI.COMM_WORLD
with contextlib.ExitStack() as stack:
    address = ""
    if comm.rank == 0:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        group = stack.enter_context(orca.join(listen=f"unix:{folder}/group"))
        address = group.address
    address = comm.bcast(address)
    if comm.rank != 0:
        group = stack.enter_context(orca.join(seeds=address))
    done = group.share(Counter, "done")
    for number in range(5):
        done.add(comm.rank)
        assert comm.allgather(number) == [number] * comm.size
    comm.barrier()
    group.fence()
    tell(rank=comm.rank, size=group.size, done=done.value)
    comm.barrier()
assert comm.allgather(1) == [1] * comm.size
