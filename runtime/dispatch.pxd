"""Dispatch: the runtime of one group, on top of its stack."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from orcalike.runtime.call cimport Call
from orcalike.runtime.degrees cimport Degrees
from orcalike.runtime.group_clock cimport GroupClock
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport Replica
from orcalike.runtime.sender cimport Sender
from orcalike.runtime.task cimport Task
from orcalike.runtime.time_budget cimport TimeBudget
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message


cdef class Runtime(Layer):
    cdef readonly Stack stack
    cdef readonly Sender sender         # this member's invocations, on the way out
    cdef readonly Degrees degrees       # those of the group and its objects, and what the view has
    cdef public object manager          # what the group itself does, `manager.Manager`
    cdef public object table            # the objects by name and number, `object_table.ObjectTable`
    cdef public object long_waits       # calls that wait for long, `long_waits.LongWaits`
    cdef public object events           # notified of views, problems and the end
    cdef int least, least_reported      # R of H1, and what the stack knows of it
    cdef readonly object incarnation
    cdef readonly object view           # the last one; None before the first
    cdef bint joins                     # no view has come since the member began to join again
    cdef readonly int position
    cdef readonly list replicas         # by number; 0 is the group itself
    cdef readonly dict waiting          # (incarnation, ticket) -> call that waits for its guard
    cdef public object start_thread     # starts a pop-up thread: given a function
    cdef Message message                # what is dispatched now
    cdef Task submitted                 # what it has made; None if it runs straight from there
    cdef public uint64_t dispatched     # messages so far, those before this member joined too
    cdef public object donor            # gives state, `giving.Donor`
    cdef public object taker            # takes it, `taking.Taker`
    cdef public object shadow           # runs writes twice, `shadow.Shadow`; None if it is not asked for
    cdef readonly TimeBudget budget     # how long operations hold up the thread that receives
    cdef readonly GroupClock clock      # the sequencer's
    cdef public object digests          # compares states, `digests.Digests`; None if it is not asked for
    cdef public uint64_t look_at        # the stamp of the next packet at which to look at states
    cdef readonly object dirty          # replicas written since they were looked at, as keys, in order
    cdef public bint look_always        # before each message
    cdef public bytes chain             # digest over all deliveries; None if it is not asked for
    cdef public bint barred             # the sender's `failure` ends with the next view
    cdef readonly object rng            # what reads draw from; None until one does
    cdef unsigned int recent, recent_code   # object and operation of the message before
    cdef int full_queues                # objects whose lock queue has reached its bound
    cdef bint credit_reported           # what the stack knows of that

    cdef int attach(self, Stack stack) except -1
    cdef int apply(self, Replica replica, Message message, const unsigned char* p,
                   const unsigned char* stop, unsigned int code) except -1
    cdef int apply_slowly(self, Replica replica, Message message, unsigned int code,
                          bytes raw) except -1
    cdef int complete(self, Message message, Replica replica, Operation operation,
                      PyObject* result, object error) except -1
    cdef int submit_dispatched(self, Task task) except -1
    cdef int come_back(self, Call call, Replica replica, Operation operation, PyObject* result) except -1
    cdef int let_through(self, Replica replica, Message message, bint awaited) except -1
    cdef Invocation taken(self, Message message)
    cpdef uint64_t group_clock(self) except? 0
    cdef int drop_invocation(self, Message message, str why) except -1
    cdef int end_calls(self, object error) except -1
    cdef int start_batch(self, Message message) except -1
    cdef int written(self, Replica replica) except -1
    cdef int slow_batch(self, int64_t now, bint alone) except -1
