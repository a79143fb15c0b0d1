"""What an object of a group that was left still answers."""

from libc.stdint cimport uint64_t

from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.replica cimport Replica


cdef class Left(Invoker):
    cdef object error
    cdef object fault               # of this process, for the objects that met it; or None
    cdef object rng                 # what reads draw from; None until one does
    cdef int position               # in the view that was the last
    cdef readonly object seed       # of the group
    cdef readonly object me         # the member that this was
    cdef readonly uint64_t stamp    # the group's clock when it was left

    cdef int refuse(self, Replica replica) except -1
