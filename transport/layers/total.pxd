"""TOTAL: one order through a sequencer."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class Sent:
    """A packet of this member: kept until it is stable (D13)."""
    cdef Message message
    cdef Py_ssize_t size            # of its body, which ends where the message ends
    cdef uint64_t counter
    cdef uint64_t seqno             # 0 until it is ordered


cdef class Total(Layer):
    cdef readonly object me, view
    cdef readonly int place
    cdef readonly bint frozen       # between FLUSH and VIEW
    # As every member.
    cdef readonly uint64_t next     # the seqno that is delivered next
    cdef readonly uint64_t counter  # of this member's latest packet
    cdef object unordered           # deque of Sent: what is not seen ordered yet
    cdef object ordered             # deque of Sent: what is ordered and not yet stable
    cdef readonly uint64_t stable_mark  # all members hold what is below
    cdef uint64_t acked             # up to here the sequencer has been told
    cdef Py_ssize_t unacked         # bytes delivered since
    cdef bint has_credit
    cdef dict counters              # incarnation -> counter of its last packet in the order
    cdef list last                  # the same by place in the view
    cdef object log                 # frozen: numbered packets that are not delivered yet
    cdef uint64_t cut               # up to here the log must reach; 0 where nobody asks
    cdef readonly uint64_t stamp    # of the packet delivered last
    # As the sequencer.
    cdef readonly uint64_t seqno    # the next to give
    cdef list expect                # by place: the next seqno that the member wants
    cdef object queue               # requests that wait for credit
    cdef object sizes               # sizes of the packets from `floor` on
    cdef uint64_t floor             # all members have applied what is below
    cdef readonly Py_ssize_t unstable   # bytes from `floor` on
    cdef readonly Py_ssize_t window_packets, window_bytes

    cdef int submit(self, Sent sent, Message message) except -1
    cdef uint64_t expected(self)
    cdef int take(self, int place, uint64_t counter, Message message) except -1
    cdef bint has_room(self)
    cdef int give_numbers(self) except -1
    cdef int number(self, int place, uint64_t counter, Message message) except -1
    cdef int deliver(self, Message message, int place, uint64_t counter, uint64_t seqno,
                     uint64_t stable) except -1
    cdef int arrived(self, Message message, uint64_t seqno, int place, uint64_t counter,
                     uint64_t stamp, uint64_t stable) except -1
    cdef uint64_t held(self)
    cdef check_cut(self)
    cdef note_counters(self)
    cdef complain(self, int place, str why)
