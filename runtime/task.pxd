"""Tasks: they wait for objects' mutexes, and run when they head all their lock queues."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.runtime.receipts cimport PendingApply
from orcalike.runtime.replica cimport Replica

cpdef enum:
    # What `run` and `attempt` answer.
    OVER = 0            # it ran, or it waits for its guard: the mutexes are let go
    KEPT = 1            # it keeps the mutexes, and calls `finished` later
    WAITS = 2           # its guard is false


cdef class Task:
    cdef readonly list replicas     # what it works on
    cdef list held                  # whose mutexes it needs: these, and what it may wake there
    cdef int missing                # of these, those that it does not hold yet
    cdef readonly Py_ssize_t size   # bytes of its arguments, as they came in the order
    cdef readonly uint64_t seqno    # its place in the order
    cdef readonly uint32_t index
    cdef readonly uint64_t stamp
    cdef PendingApply pending_apply     # ended when it is applied; None if it was at once
    cdef public bint changes_nothing    # it needs no mutex but those of `replicas`, and wakes nothing
    cdef bint placed                # it has, or queues for, all mutexes that it needs
    cdef bint applied               # it has run, and so has what it has let run
    cdef bint relieved              # another thread went on with the order while this one ran it
    cdef public bint waits          # it is in the waiting lists of its objects
    cdef readonly bint is_read      # it is this process's own, and no other replica knows it
    cpdef Task at(self, uint64_t seqno, uint32_t index, uint64_t stamp)
    cpdef int run(self) except -1
    cdef int attempt(self) except -1
    cdef int refuse(self, object error) except -1
    cpdef int fail(self, object error) except -1
    cdef int hand_on(self, Replica replica) except -1


cdef int submit(Task task) except -1
cdef int finish(Task task) except -1
cdef int wake_waiting(Task task, Replica replica) except -1
cdef int note_pending(Task task) except -1
cdef int note_applied(Task task) except -1
cdef int hand_on(Replica replica) except -1
