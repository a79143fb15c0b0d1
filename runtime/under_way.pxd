"""Under way: this member's invocations that have no outcome yet."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.runtime.degrees cimport Degrees
from orcalike.runtime.invocation cimport Invocation, Invoker
from orcalike.runtime.receipts cimport Receipts
from orcalike.transport.drivers.driver cimport Driver
from orcalike.transport.layers.pack cimport MESSAGES_MAX, Pack


cdef class UnderWay(Invoker):
    cdef readonly object runtime        # what calls run in: `dispatch.Runtime`, whose module cimports this one
    cdef Pack pack                      # what invocations are marshalled into
    cdef public Driver driver
    cdef readonly Degrees degrees       # what is asked of the view
    cdef readonly Receipts receipts     # None if STABLE is not in the stack
    cdef public object failure          # why every call raises; None while all is well
    cdef public object history          # a `history.Recorder`; None if none is kept
    cdef void* issued[MESSAGES_MAX]     # this member's invocations by ticket, borrowed, or NULL

    cdef Invocation take(self, uint64_t ticket)
    cpdef lose(self, Invocation invocation, error)
    cdef int lose_all(self, object error) except -1
    cdef int wait_visibly(self, Invocation invocation, int64_t until) except -1
    cpdef int degree_of(self, Invocation invocation) except -1
    cdef int take_back(self, Invocation invocation, str why) except -1
    cdef object not_sent(self, Invocation invocation, int degree, str why)
