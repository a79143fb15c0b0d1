"""Dispatch: the runtime of one group, on top of its stack."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.replica cimport Replica
from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.layers.pack cimport Pack
from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message

cdef enum:
    WINDOW = 65536          # invocations of this member that may be under way
    BATCH_MAX = 5000000     # ns: the bound on an inline operation (D07)


cdef class Runtime(Invoker):
    cdef readonly Stack stack
    cdef Pack pack
    cdef public Driver driver
    cdef readonly Codec codec
    cdef readonly object incarnation
    cdef readonly object view
    cdef readonly int place
    cdef readonly list replicas         # by number; 0 is the group itself
    cdef readonly dict waiting          # (incarnation, ticket) -> call that waits for its guard
    cdef public object manager          # what the group itself does, `manager.Manager`
    cdef public object events           # told of views, problems and the end
    cdef public object failure          # why every call raises; None while all is well
    cdef public object start_thread     # starts a pop-up thread: given a function
    cdef void* issued[WINDOW]           # this member's invocations by ticket, borrowed, or NULL
    cdef Message message                # what is dispatched now
    cdef public uint64_t dispatched     # messages so far, those before this member joined too
    cdef readonly uint64_t reads_slow, writes
    cdef public object donor            # gives and takes state, `state.Donor`
    cdef public object budget           # told of operations that took too long
    cdef public bytes chain             # digest over all deliveries; None where nobody asks
    cdef Waitable room_waitable         # threads that wait for room
    cdef list room_futures              # coroutines that do
    cdef unsigned int recent, recent_code   # object and operation of the message before
    cdef uint64_t batch_first           # the first message of this packet
    cdef int64_t batch_began, batch_worked
    cdef int64_t watched_until          # packets are timed by processor time until then
    cdef int64_t timed_until            # operations are timed one by one until then
    cdef int64_t began, began_working   # of the operation that is timed now

    cdef Invocation issue(self, object replica, object operation)
    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names)
    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names) except -1
    cdef int encode_slow(self, Replica replica, Operation operation, tuple args,
                         dict named) except -1
    cpdef commit(self, unsigned int number, unsigned int code, bytes body)
    cpdef Invocation invoke_group(self, int code, tuple args, str what)
    cdef int check(self, Replica replica) except -1
    cdef int refuse_nested(self, object what) except -1
    cdef int wait_for_room(self) except -1
    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1
    cdef int apply(self, Replica replica, Message message, const unsigned char* p,
                   const unsigned char* stop, unsigned int code) except -1
    cdef int apply_slowly(self, Replica replica, Message message, unsigned int code,
                          bytes raw) except -1
    cdef int complete(self, Message message, Replica replica, Operation operation,
                      PyObject* result) except -1
    cdef Invocation taken(self, Message message)
    cdef int stranger(self, Message message, str why) except -1
    cdef int start_batch(self) except -1
    cdef int slow_batch(self, int64_t now) except -1
    cdef int start_timing(self) except -1
    cdef int stop_timing(self, Replica replica, unsigned int code) except -1
    cdef int tell_room(self) except -1
