"""The sequencer's clock, as far as it is known at this member."""

from libc.stdint cimport int64_t, uint64_t


cdef class GroupClock:
    cdef int64_t ahead                  # of this process's clock: the sequencer's, at the least
    cdef bint ahead_is_old              # it is from the view before
    cdef uint64_t shown                 # the latest time that a read has seen

    cdef inline void note(self, uint64_t stamp, int64_t now) noexcept:
        """A packet with this stamp has come."""
        if <int64_t>stamp - now > self.ahead or self.ahead_is_old:
            self.ahead = <int64_t>stamp - now
            self.ahead_is_old = False

    cdef uint64_t read(self, uint64_t stamp, int64_t now) except? 0
