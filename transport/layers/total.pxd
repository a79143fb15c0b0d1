"""TOTAL: one order through a sequencer."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.total.order cimport Order
from orcalike.transport.total.packets cimport Packet
from orcalike.transport.total.sequencer cimport Sequencer
from orcalike.transport.wire.message cimport Message


cdef class Total(Order):
    cdef readonly object me, view
    cdef Sequencer sequencer        # its part as the first member of the view
    cdef object after               # the view to come, while the rest of the last one is delivered
    cdef readonly tuple begins      # `next` and `held` as the view began
    cdef readonly uint64_t counter  # of this member's latest packet
    cdef uint64_t submitted         # the counter of the last one that was sent in this view
    cdef uint64_t overdue           # the first unordered one, when it was looked for last
    cdef bint ack_due                  # the sequencer waits for word of what is held here
    cdef dict counters              # incarnation -> counter of its last packet in the order
    cdef int64_t slow

    cdef int submit(self, uint64_t counter, int degree, Message message) except -1
    cdef Py_ssize_t submitted_count(self) noexcept
    cdef int submit_more(self) except -1
    cdef int report(self) except -1
    cdef uint64_t expected(self) noexcept
    cdef bint is_whole(self) noexcept
    cdef int look_for_own(self) except -1
    cdef int arrived(self, Message message, const unsigned char* header) except -1
    cdef str wrong(self, int position, uint64_t counter)
    cdef object sender_of(self, Packet* held)
    cdef check_cut(self)
    cdef int keep_pace(self) except -1
    cdef int fall_back_to(self, uint64_t last) except -1
    cdef int end_view(self, object it, object view) except -1
    cpdef list hand_over(self, object view, object it)
    cdef int settle_in(self, object before, object view) except -1
    cdef int resume(self, object before) except -1
    cdef int count_whole(self) except -1
    cdef int store_ordered(self, Message message, Packet* held) except -1
