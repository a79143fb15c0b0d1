"""The bytes of an object that has some, to be read in place."""

from cpython.buffer cimport Py_buffer


cdef class ReadBuffer:
    cdef Py_buffer buffer
    cdef const unsigned char* start     # NULL where there are none
    cdef Py_ssize_t size
