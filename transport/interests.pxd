"""What those wait for that wait for little."""

from libc.stdint cimport uint64_t


cdef class Interests:
    cdef readonly int count         # how many wait so
    cdef uint64_t objects           # the bits of the objects for which any of them waits
    cdef unsigned int[64] waiting   # how many, by bit

    cdef int add(self, uint64_t interest, int more) noexcept
