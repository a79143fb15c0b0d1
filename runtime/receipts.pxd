"""Receipts: what was applied here, and the calls that wait until others have applied it."""

from libc.stdint cimport uint64_t

from orcalike.runtime.invocation cimport Invocation
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class PendingApply:
    """Tasks that were delivered at one place in the order, and are not applied yet."""
    cdef readonly uint64_t since    # nothing from that place on is acked
    cdef int tasks
    cdef Receipts receipts

    cdef PendingApply share(self)
    cdef int end(self) except -1


cdef class Receipts(Layer):
    cdef object runtime             # `dispatch.Runtime`, whose module cimports this one
    cdef uint64_t delivered         # the seqno of the newest packet
    cdef uint64_t acked             # acked to STABLE: all up to here is applied
    cdef object pending             # deque, oldest first
    cdef Message receipt            # what stands for a packet in an ack to STABLE
    cdef object matrix              # as STABLE shared it
    cdef dict held                  # ticket -> (invocation, result, exception): applied here
    cdef readonly dict awaited      # number of members -> heap of (seqno, ticket)
    cdef dict marks                 # ticket of a mark -> that of the invocation it stands for

    cdef PendingApply begin_pending(self)
    cdef int note(self, uint64_t seqno) except -1
    cdef int settled(self) except -1
    cdef int check(self, object operation, unsigned int members) except -1
    cdef int release(self, uint64_t ticket) except -1
    cdef int wait_for(self, uint64_t seqno, Invocation invocation) except -1
    cpdef int hold_back(self, Invocation invocation, uint64_t seqno, object result,
                        object error) except -1
    cdef bint give_up(self, Invocation invocation, str why) except -1
