"""What news wakes this member, of the order in memory."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.ring.fast cimport FastOrder


cdef class ListeningOrder(FastOrder):
    cdef Py_ssize_t allowed         # bytes of others that may still be delivered in it
    cdef bint shares                # this member has written much in this input
    cdef int64_t linger             # ns: `freshness`
    cdef uint64_t listens_for       # what news sets the alarm, where it is armed
    cdef int64_t linger_at          # deadlines: to look for news, ...
    cdef int64_t look_at            # ... the same although the alarm is armed,

    cdef int listen(self) except -1
    cdef uint64_t interest(self, int64_t* until) noexcept
    cdef int listen_by_alarm(self, uint64_t interest) except -1
    cdef int look_at_row(self) except -1
    cdef int stopped_at(self, int found) except -1
