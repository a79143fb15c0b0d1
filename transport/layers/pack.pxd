"""PACK: many small messages in one packet."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring


cdef class Pack(Layer):
    cdef Message packet             # the open one, or None
    cdef Py_ssize_t packed          # messages in it
    cdef unsigned char open_degree  # the largest of their degrees
    cdef Ring closed                # packets that are full
    cdef readonly uint64_t ticket   # the next message's number: this member's own count
    cdef readonly uint64_t returned # of these, how many were delivered here
    cdef readonly Py_ssize_t gathered   # bytes in packets that are closed and not cast yet
    cdef readonly Py_ssize_t under_way  # bytes that were cast and not delivered here yet
    cdef readonly Py_ssize_t size   # a packet is closed at this size
    cdef readonly Py_ssize_t window_messages, window_bytes
    cdef int place                  # this member's place in the view
    cdef bint ready                 # there is something to cast

    cdef unsigned char* reserve(self, Py_ssize_t size) except NULL
    cdef int commit(self, unsigned char* stop) except -1
    cdef bint mixes(self, unsigned char degree) noexcept
    cdef int raise_degree(self, unsigned char degree) except -1
    cdef bint is_full(self) noexcept
    cdef bint has_ample_room(self) noexcept
    cdef int close(self) except -1
    cdef int come_back(self, Py_ssize_t size, uint32_t count) except -1
    cpdef cast_packets(self)
