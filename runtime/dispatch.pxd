"""Dispatch: the runtime of one group, on top of its stack."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.runtime.applying cimport Applying
from orcalike.runtime.atomic_calls cimport AtomicCalls
from orcalike.runtime.degrees cimport Degrees
from orcalike.runtime.group_clock cimport GroupClock
from orcalike.runtime.replica cimport Replica
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message


cdef class Runtime(Applying):
    cdef readonly Stack stack
    cdef readonly Degrees degrees       # those of the group and its objects, and what the view has
    cdef public object manager          # what the group itself does, `manager.Manager`
    cdef readonly AtomicCalls atomic_calls  # of this, calls of atomic functions
    cdef public object table            # the objects by name and number, `object_table.ObjectTable`
    cdef public object long_waits       # calls that wait for long, `long_waits.LongWaits`
    cdef public object events           # notified of views, problems and the end
    cdef int least, least_reported      # R of H1, and what the stack knows of it
    cdef readonly object incarnation
    cdef readonly object view           # the last one; None before the first
    cdef bint joins                     # no view has come since the member began to join again
    cdef readonly list replicas         # by number; 0 is the group itself
    cdef readonly dict waiting          # (incarnation, ticket) -> call that waits for its guard
    cdef public object start_thread     # starts a pop-up thread: given a function
    cdef Message message                # what is dispatched now
    cdef public uint64_t dispatched     # messages so far, those before this member joined too
    cdef public object donor            # gives state, `giving.Donor`
    cdef public object taker            # takes it, `taking.Taker`
    cdef public object shadow           # runs writes twice, `shadow.Shadow`; None if it is not asked for
    cdef readonly GroupClock clock      # the sequencer's
    cdef public object digests          # compares states, `digests.Digests`; None if it is not asked for
    cdef public bint look_always        # before each message
    cdef public bytes chain             # digest over all deliveries; None if it is not asked for
    cdef public bint barred             # the sender's `failure` ends with the next view
    cdef readonly object rng            # what reads draw from; None until one does
    cdef int full_queues                # objects whose lock queue has reached its bound
    cdef bint credit_reported           # what the stack knows of that

    cdef int do(self, Message message, uint32_t code, const unsigned char* p, const unsigned char* stop) except -1
    cdef int attach(self, Stack stack) except -1
    cpdef uint64_t group_clock(self) except? 0
    cdef int end_calls(self, object error) except -1
    cdef int start_batch(self, Message message) except -1
    cdef int slow_batch(self, int64_t now, bint alone) except -1
