"""Which resilience degree each of a member's own messages has, as far as they have not come back."""

from libc.stdint cimport uint64_t


cdef struct Run:
    uint64_t first                  # the number of its first message
    unsigned char degree            # of its messages


cdef class DegreesOfMessages:
    cdef Run* runs                  # owned; in the order of their numbers
    cdef Py_ssize_t first, stop     # those that count
    cdef Py_ssize_t capacity

    cpdef int begin(self, uint64_t ticket, unsigned char degree, uint64_t returned) except -1
    cpdef unsigned char of(self, uint64_t ticket) noexcept
    cpdef unsigned char largest(self, uint64_t first, uint64_t count) noexcept
    cpdef int clear(self, uint64_t ticket) except -1
    cdef int put(self, uint64_t first, unsigned char degree) except -1
    cdef int make_room(self) except -1
