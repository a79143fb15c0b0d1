"""The memory below RING: the order and the lanes that a member maps, and the rows of a view."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.transport.drivers.ring_segment cimport Segment, ring_member
from orcalike.transport.fast cimport FastLayer

cdef extern from "ring/order.h" nogil:
    enum:
        RING_FENCED
    int ring_append_fence(ring_member* m)

cdef enum:
    # The first byte of a message to some members.
    OFFER = 1                       # [lineage, handles of the order, the lane, and the alarm]
    UNREADABLE = 2                  # why it cannot be: the younger of the two leaves, or
    APART = 3                       # says to all that it shares no memory with them;
    OTHER = 4                       # what the layer above sent


cdef class MappedOrder(FastLayer):
    cdef readonly object me, installed  # this member, and the view that it is in
    cdef str group                  # its name
    cdef readonly int position
    cdef readonly uint64_t next     # the seqno of the first packet that was not delivered here
    cdef readonly uint64_t stamp    # the latest of the packets that were delivered
    cdef Segment segment            # None as long as this member is not attached
    cdef uint64_t start_slot        # the slot from which it applies, while it is not
    cdef uint64_t published         # the others know that all below this slot is applied here
    cdef object lineage             # of the order
    cdef dict rows                  # by incarnation: (row, incarnation there), as the view began
    cdef dict counters              # by incarnation: of its last packet before the view
    cdef int position_of[64]        # by row
    cdef set mapped                 # incarnations whose lanes are mapped here
    cdef set mapped_by              # those that have mapped the lane of this member, as it knows
    cdef int alarms[64]             # descriptors of others' alarms, by row; -1
    cdef bint may_append            # all have begun the view, as this member has seen
    cdef readonly bint frozen       # between FLUSH and VIEW
    cdef bint has_credit
    cdef bint failed                # the memory cannot be used: this member leaves, or
    cdef object on_apart            # this is called with two that share no memory (ring/choice.py), and if for good; or None
    cdef Segment left               # memory that this member has left, and may still hand up packets of; or None
    cdef bint armed                 # the alarm will be written to
    cdef bint appended              # others are to be woken
    cdef uint64_t slots, lane
    cdef int64_t lanes_at           # to offer the lane again,
    cdef int64_t full_at            # and to try again to append,
    cdef int64_t full_since         # as the others have not applied what is there since this time
    cdef int64_t offers             # of it in this view, while packets wait for some that do not begin it
    cdef int64_t lost_since         # the row of this member was not offered to it, though the view has it there; or NEVER
    cdef bint is_out                # others have gone on without this member, as the memory shows
    cdef int64_t unlinked_offers    # likewise, while no link leads to one whose memory is not mapped here
    cdef int64_t detection, slow    # ns: D, `slow_timeout`

    cdef int set_deadline(self) except -1
    cdef int full(self) except -1
    cdef str attach(self, object member, object order_there)
    cdef int settle_rows(self) except -1
    cdef int enter_order(self, object it, object view) except -1
    cdef int make(self) except -1
    cdef int pass_fence(self, object view) except -1
    cdef int take(self, int kind, int source, bytes body) except -1
    cdef int take_lane(self, int source, bytes body) except -1
    cdef int take_refusal(self, int source, bytes body) except -1
    cdef int find_row_lost(self, object member) except -1
    cdef int use(self, Segment segment) except -1
    cdef str map_lane(self, object member, object lane, object alarm)
    cdef int say_begun(self) except -1
    cdef int check_row(self) except -1
    cdef int damaged(self, str word, str why=*) except -1
    cdef list unread(self)
    cdef int look_for_link(self) except -1
    cdef bint have_all_begun(self) except -1
    cdef int offer_lane(self, bint again) except -1
    cdef int offer_again(self, bint packets_wait) except -1
    cdef tuple not_begun(self, uint32_t reads_all)
    cdef int give_up(self, str why, object other, bint for_good=*) except -1
    cdef int say_apart(self, object younger, object older, bint for_good) except -1
    cdef int take_apart(self, int source, bytes body) except -1
    cdef int close(self) except -1
    cdef int drop_alarms(self) noexcept
    cdef int drop_alarm(self, unsigned row) noexcept
