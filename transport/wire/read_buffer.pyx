"""The bytes of an object that has some, to be read in place.

Cython's own memoryviews do the same, and bring some 90 KB of machine code into each module that has
one.
"""

import cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


@cython.final
@cython.no_gc                           # what it holds is most often bytes
cdef class ReadBuffer:
    """Holds an object's bytes, which do not move or change their number while it lives."""

    def __cinit__(self, data not None):
        PyObject_GetBuffer(data, &self.buffer, PyBUF_SIMPLE)
        self.size = self.buffer.len
        self.start = <const unsigned char*>self.buffer.buf if self.size else NULL

    def __dealloc__(self):
        PyBuffer_Release(&self.buffer)  # does nothing where none was had
