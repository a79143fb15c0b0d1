"""Caller: how this member's invocations leave, and how their outcomes are waited for."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.operation cimport Operation
from orcalike.runtime.receipts cimport Receipts
from orcalike.runtime.replica cimport Replica
from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.layers.pack cimport Pack
from orcalike.transport.stack cimport Stack

cdef enum:
    WINDOW = 65536          # invocations of this member that may be under way


cdef class Caller(Invoker):
    cdef readonly Stack stack
    cdef Pack pack
    cdef public Driver driver
    cdef readonly Codec codec
    cdef public object manager          # what the group itself does, `manager.Manager`
    cdef public object table            # the objects by name and number, `object_table.ObjectTable`
    cdef public object degrees          # what their degrees come to, `degrees.Degrees`
    cdef public object long_waits       # `long_waits.LongWaits`
    cdef public object events           # told of views, problems and the end
    cdef public bint patient            # a call that the view is too small for waits, or raises
    cdef public int group_degree        # of what has no degree of its own
    cdef public bint available          # a degree counts as far as the view has members for it
    cdef public bint single             # nobody else can join: all degrees are 0
    cdef int least, least_told          # R of H1, and what the stack knows of it
    cdef readonly Receipts receipts     # None where STABLE is not in the stack
    cdef public object failure          # why every call raises; None while all is well
    cdef public object notice           # what the next call raises, once
    cdef public object history          # a `history.Recorder`; None where nobody asks
    cdef void* issued[WINDOW]           # this member's invocations by ticket, borrowed, or NULL
    cdef readonly uint64_t reads_slow, writes
    cdef Waitable room_waitable         # threads that wait for room
    cdef list room_futures              # coroutines that do
    cdef dict room_limits               # by thread: until when it waits for room, in ns
    cdef Py_ssize_t refused             # bytes of the largest call that WindowFull has refused since

    cdef int attach_receipts(self) except -1
    cdef Invocation issue(self, object replica, object operation, unsigned int wanted)
    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names, unsigned int wanted)
    cdef int degree_for(self, object operation, int degree) except -1
    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names, unsigned char degree) except -1
    cdef int encode_slow(self, Replica replica, Operation operation, tuple args, dict named,
                         unsigned char degree) except -1
    cpdef commit(self, unsigned int number, unsigned int code, bytes body,
                 unsigned char degree=*)
    cpdef Invocation invoke_group(self, int code, tuple args, str what, unsigned int wanted=*,
                                  int degree=*)
    cdef Invocation record_call(self, Replica replica, Operation operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names, unsigned char degree,
                                unsigned int wanted)
    cdef Invocation commit_recorded(self, Replica replica, object operation, uint32_t code,
                                    tuple args, bytes body, unsigned char degree,
                                    unsigned int wanted)
    cdef int check_stable(self, object operation, unsigned int wanted) except -1
    cdef int check(self, Replica replica) except -1
    cdef int refuse_nested(self, object what) except -1
    cdef bint has_room(self, Py_ssize_t size) noexcept
    cdef object invoke_within(self, object replica, object operation, PyObject* const* args,
                              Py_ssize_t count, PyObject* names, int64_t timeout,
                              unsigned int wanted)
    cdef int64_t limit_room(self, int64_t timeout) except -1
    cdef int wait_for_room(self, Py_ssize_t size) except -1
    cdef int give_up_claim(self, Pack pack) except -1
    cdef int tell_room(self) except -1
    cdef bint is_too_small(self, int degree) except -1
    cdef int degree_of(self, Invocation invocation) except -1
    cdef bint take_back(self, Invocation invocation) except -1
    cdef object not_sent(self, Invocation invocation, str why)
    cdef Invocation start_read(self, object replica, object operation, PyObject* const* args,
                               Py_ssize_t count, PyObject* names, bint brief)
    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1
