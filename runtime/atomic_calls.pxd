"""Calls of atomic functions: how they leave, and what is done with them in the order."""

from orcalike.runtime.applying cimport Applying
from orcalike.runtime.atomic cimport Atomic
from orcalike.runtime.invocation cimport Invocation
from orcalike.transport.wire.message cimport Message


cdef class AtomicCalls:
    cdef Applying runtime       # a `dispatch.Runtime`, whose module cimports this one

    cdef int take(self, Message message, const unsigned char* p, const unsigned char* stop, Invocation invocation) except -1
    cdef int submit(self, Message message, object member, const unsigned char* p, const unsigned char* stop,
                    Invocation invocation) except -1
    cdef list decode(self, const unsigned char* p, Py_ssize_t size)
    cdef int degree_of(self, Atomic atomic, list replicas) except -1
