"""What the sequencer knows of each member of a view."""

from libc.stdint cimport uint64_t


cdef struct Standing:
    uint64_t last               # the counter of its last packet in the order
    uint64_t expects            # the next seqno that it wants
    uint64_t holds              # the next seqno that it does not hold
    Py_ssize_t waiting          # requests of it that wait for their number, ...
    Py_ssize_t waiting_bytes    # ... and their bytes
    bint whole                  # its word counts for resilience: its state is complete


cdef class MemberAcks:
    cdef Standing* by_position
    cdef int count
    cdef int begin(self, list counters, uint64_t expects) except -1
    cdef int holders(self, uint64_t seqno) noexcept
    cdef int make_wait(self, int position, Py_ssize_t size) except -1
    cdef void let_go(self, int position, Py_ssize_t size) noexcept

    cdef inline uint64_t least_expected(self) noexcept:
        """What the slowest member wants next."""
        cdef uint64_t least = <uint64_t>-1
        cdef int position
        for position in range(self.count):
            least = min(least, self.by_position[position].expects)
        return least

    cdef inline uint64_t least_held(self) noexcept:
        """All members hold what is below."""
        cdef uint64_t least = <uint64_t>-1
        cdef int position
        for position in range(self.count):
            least = min(least, self.by_position[position].holds)
        return least
