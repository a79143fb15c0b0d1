"""FAST: the way of a lone packet past the layers, where nothing is before it."""

from libc.stdint cimport uint64_t

from orcalike.transport.layers.ring cimport SharedOrder
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADERS_MAX = 16                # bytes of headers of the layers between


cdef class Fast:
    cdef SharedOrder order          # into which packets go
    cdef unsigned char headers[HEADERS_MAX]     # what the layers between put before each
    cdef Py_ssize_t before          # bytes of them
    cdef unsigned char* packet      # the one that is written, in the own lane
    cdef Py_ssize_t size            # of its body, behind the headers

    cdef unsigned char* room(self, Py_ssize_t size, unsigned char degree) except? NULL
    cdef bint append(self, Py_ssize_t size) except -1
    cdef Message take(self)
    cdef int end(self) except -1
