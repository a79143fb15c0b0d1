"""Applying: an invocation at its place in the order, on the thread that receives."""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from orcalike.runtime.call cimport Call
from orcalike.runtime.invocation cimport Invocation
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport Replica
from orcalike.runtime.sender cimport Sender
from orcalike.runtime.task cimport Task
from orcalike.runtime.time_budget cimport TimeBudget
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class Applying(Layer):
    cdef readonly Sender sender         # this member's invocations, on the way out
    cdef readonly TimeBudget budget     # how long operations hold up the thread that receives
    cdef readonly int position
    cdef Task submitted                 # what a message has made; None if it runs straight from there
    cdef unsigned int recent, recent_code   # object and operation of the message before
    cdef readonly bint runs_own         # that message is this member's own
    cdef public uint64_t look_at        # the stamp of the next packet at which to look at states
    cdef readonly object dirty          # replicas written since they were looked at, as keys, in order

    cdef int apply(self, Replica replica, Message message, const unsigned char* p,
                   const unsigned char* stop, unsigned int code) except -1
    cdef int apply_slowly(self, Replica replica, Message message, unsigned int code,
                          bytes raw) except -1
    cdef int complete(self, Message message, Replica replica, Operation operation,
                      PyObject* result, object error) except -1
    cdef int submit_dispatched(self, Task task) except -1
    cdef int come_back(self, Call call, Replica replica, Operation operation, PyObject* result) except -1
    cdef int come_out(self, Call call, Replica replica, Operation operation) except -1
    cdef int let_wait(self, Replica replica, Operation operation, Message message, unsigned int code,
                      tuple given, Py_ssize_t size) except -1
    cdef Call call_of(self, Message message, Replica replica, Operation operation, unsigned int code, bytes raw,
                      Invocation invocation)
    cdef int let_through(self, Replica replica, Message message, bint awaited) except -1
    cdef Invocation taken(self, Message message)
    cdef int drop_invocation(self, Message message, str why) except -1
    cpdef int note_ran(self, Replica replica, int bit) except -1
    cdef int written(self, Replica replica) except -1
    cpdef object member_at(self, int position)
