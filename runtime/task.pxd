"""Tasks: what waits for objects' mutexes, and runs when it heads all their lock queues."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.receipts cimport Debt
from orcalike.runtime.replica cimport Replica

cdef enum Progress:
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
    cdef Debt debt                  # paid when it is applied; None where it was at once
    cdef public bint changes_nothing    # it needs no mutex but those of `replicas`, and wakes nothing
    cdef bint placed                # it has, or queues for, all mutexes that it needs
    cdef bint brief                 # its thread has a time limit, or an event loop: it runs no other task
    cdef bint applied               # it has run, and so has what it has let run
    cdef bint relieved              # another thread went on with the order while this one ran it
    cpdef int run(self) except -1


cdef class Call(Task):
    cdef readonly object function   # an Operation or an Atomic; None until the class is known
    cdef readonly uint32_t code     # of an operation: its index, twice, plus 1 where names follow
    cdef readonly object raw        # the arguments as they came; None once they are decoded
    cdef readonly tuple args
    cdef readonly dict named
    cdef readonly object sender     # the member that called; None for a hook, or a local read
    cdef readonly object source     # its incarnation, 0 for a hook; None for a local read
    cdef readonly uint64_t ticket
    cdef readonly Invocation invocation     # where the caller is here and wants to know
    cdef readonly object runtime
    cdef public bint waits          # it is in the waiting lists of its objects
    cdef bint waited                # its guard was false once
    cdef public bint departed       # its caller had left before it was delivered: it cannot wait
    cdef bint binds                 # it may wait for its guard at several objects
    cdef int64_t began              # when it began, where another thread took over

    cdef int attempt(self) except -1
    cdef bint pops_up(self) except -1
    cdef int let_wait(self) except -1
    cdef bint finds_room(self) except -1
    cdef int bind_together(self, int more) except -1
    cdef int over(self, object result, object error) except -1
    cdef object look_at_state(self)


cdef int submit(Task task) except -1
cdef int finish(Task task) except -1
cdef int owe(Task task) except -1
cdef int pay(Task task) except -1
cdef int hand_on(Replica replica) except -1
cpdef bint is_fault(object error)
