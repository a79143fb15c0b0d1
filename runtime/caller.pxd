"""Caller: how this member's invocations leave, and how their outcomes are waited for."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.operation cimport Operation
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
    cdef public object events           # told of views, problems and the end
    cdef public object failure          # why every call raises; None while all is well
    cdef public object history          # a `history.Recorder`; None where nobody asks
    cdef void* issued[WINDOW]           # this member's invocations by ticket, borrowed, or NULL
    cdef readonly uint64_t reads_slow, writes
    cdef Waitable room_waitable         # threads that wait for room
    cdef list room_futures              # coroutines that do

    cdef Invocation issue(self, object replica, object operation)
    cdef Invocation commit_call(self, object replica, object operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names)
    cdef Invocation record_call(self, Replica replica, Operation operation, PyObject* const* args,
                                Py_ssize_t count, PyObject* names)
    cdef Invocation commit_recorded(self, Replica replica, object operation, uint32_t code,
                                    tuple args, bytes body)
    cdef int encode(self, Replica replica, Operation operation, PyObject* const* args,
                    Py_ssize_t count, PyObject* names) except -1
    cdef int encode_slow(self, Replica replica, Operation operation, tuple args,
                         dict named) except -1
    cpdef commit(self, uint32_t number, uint32_t code, bytes body)
    cpdef Invocation invoke_group(self, int code, tuple args, str what)
    cdef int check(self, Replica replica) except -1
    cdef int refuse_nested(self, object what) except -1
    cdef int wait_for_room(self) except -1
    cdef int tell_room(self) except -1
    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1
