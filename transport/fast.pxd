"""FAST: the way of a packet past the layers, where nothing is before it."""

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADERS_MAX = 16                # bytes of headers of the layers between


cdef class FastLayer(Layer):
    cdef unsigned char* fast_room(self, Py_ssize_t size, unsigned char degree) except? NULL
    cdef bint fast_append(self, Py_ssize_t size, uint64_t spares) except -1
    cdef Message fast_take(self)
    cdef int fast_end(self) except -1
