"""RING: one order in shared memory."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.ring_segment cimport Segment, ring_entry
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    NO_CODE = -32768            # no code of the C functions: an exception was raised


cdef class Unordered:
    """A packet of this member that is not in the order yet."""
    cdef Message message
    cdef Py_ssize_t size            # of its body, which ends where the message ends


cdef class SharedOrder(Layer):
    cdef readonly object me, view
    cdef str group                  # its name
    cdef readonly int position
    cdef readonly uint64_t next     # the seqno of the first packet that was not delivered here
    cdef readonly uint64_t stamp    # the latest of the packets that were delivered
    cdef readonly tuple begins      # `next` as the view began, twice
    cdef readonly bint frozen       # between FLUSH and VIEW
    cdef int whole                  # members whose state is complete
    cdef readonly int replicas      # members with replicas whose word counts for resilience
    cdef Segment segment            # None as long as this member is not attached
    cdef uint64_t start_slot        # the slot from which it applies, while it is not
    cdef uint64_t published         # the others know that all below this slot is applied here
    cdef object lineage             # of the order
    cdef dict rows                  # by incarnation: (row, incarnation there), as the view began
    cdef dict counters              # by incarnation: of its last packet before the view
    cdef int position_of[64]        # by row
    cdef set mapped                 # incarnations whose lanes are mapped here
    cdef set mapped_by              # those that have mapped the lane of this member
    cdef list bells                 # descriptors of others' bells, by row; -1
    cdef Ring unordered
    cdef bint may_append            # all others have mapped the own lane
    cdef bint draining
    cdef bint at_fence              # all of the view is delivered, and it has ended
    cdef bint owes_report           # it was asked to flush, and has not come to the fence
    cdef bint awaits_cut            # `holds` is due when it has
    cdef bint is_out                # others have gone on without this member, as the memory shows
    cdef bint failed                # the memory cannot be used: this member leaves
    cdef bint appended              # others are to be woken
    cdef bint delivered             # something was, since this member listened last
    cdef bint armed                 # the bell will be written to
    cdef bint has_credit
    cdef frozenset lacking
    cdef bint was_reset
    cdef int mode, least            # as TOTAL's
    cdef uint64_t slots, lane
    cdef int64_t slow, detection
    cdef int64_t linger_at          # deadlines: to look for news, ...
    cdef int64_t full_at            # ... to try again to append,
    cdef int64_t full_since
    cdef int64_t lanes_at           # to offer the lane again,
    cdef int64_t stuck_at           # and to ask for a view, where the memory says that this one is over

    cdef bint may_cast(self) noexcept
    cdef bint append(self, Unordered packet) except -1
    cdef int put(self, Message message, Py_ssize_t size) except NO_CODE
    cdef int submit_more(self) except -1
    cdef int full(self) except -1
    cdef int drain(self) except -1
    cdef int deliver(self, ring_entry* entry) except NO_CODE
    cdef int stopped_at(self, int found) except -1
    cdef int meet_fence(self) except -1
    cdef int end_view(self) except -1
    cdef int advance(self) except -1
    cdef int listen(self) except -1
    cdef int set_deadline(self) except -1
    cdef bint has_members(self, int degree) except -1
    cdef bint is_met(self, int degree) except -1
    cdef int tell_degree(self) except -1
    cdef int count_whole(self) except -1
    cdef str attach(self, object handle)
    cdef int settle_rows(self) except -1
    cdef int enter_order(self, object it, object view) except -1
    cdef int pass_fence(self, object view) except -1
    cdef int count_mapped(self) except -1
    cdef int take_lane(self, int source, bytes body) except -1
    cdef str map_lane(self, object member, object lane, object bell)
    cdef int offer_lane(self) except -1
    cdef int give_up(self, str why) except -1
    cdef int close(self) except -1
