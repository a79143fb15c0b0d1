"""RING: one order in shared memory."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.ring_segment cimport ring_advance, ring_entry, ring_member
from orcalike.transport.drivers.mapped_order cimport MappedOrder
from orcalike.transport.ring.holders cimport Holders
from orcalike.transport.ring.incoming cimport Incoming
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    NO_CODE = -32768            # no code of the C functions: an exception was raised
    # A packet in the lane: degree (1) | is it a part (1) | 0 (2) | where the part begins (4) | the writer's clock (8) | body
    LANE_HEADER = 16
    MUCH = 512                  # bytes of a packet of a member that writes much


cdef class Unordered:
    """A packet of this member that is not in the order yet."""
    cdef Message message
    cdef Py_ssize_t size            # of its body, which ends where the message ends
    cdef Py_ssize_t sent            # of that, in this view: a large one goes in parts


cdef class SharedOrder(MappedOrder):
    cdef readonly tuple begins      # `next` as the view began, twice
    cdef Holders holders            # members whose word counts for resilience
    cdef Ring unordered
    cdef Incoming incoming          # copies of others' packets, and what is not whole here
    cdef bint draining
    cdef bint at_fence              # all of the view is delivered, and it has ended
    cdef bint report_is_due           # it was asked to flush, and has not come to the fence
    cdef bint awaits_cut            # `holds` is due when it has
    cdef bint is_out                # others have gone on without this member, as the memory shows
    cdef bint delivered             # something was, since this member listened last
    cdef uint64_t input             # the core's, for which the next two are
    cdef bint shares                # this member has written much in this input
    cdef Py_ssize_t allowed         # bytes of others that may still be delivered in it
    cdef int64_t busy_until         # until then this member is taken to write much, and other threads deliver nothing
    cdef frozenset lacking
    cdef int mode                   # as TOTAL's
    cdef int64_t linger             # ns: `freshness`
    cdef int64_t linger_at          # deadlines: to look for news, ...
    cdef int64_t look_at            # ... the same although the alarm is armed,
    cdef int64_t stuck_at           # and to ask for a view, where the memory says that this one is over

    cdef inline bint may_cast(self) noexcept:
        """Whether there is an order to append to."""
        return self.may_append and not (self.frozen or self.at_fence or self.is_out or self.draining)

    cdef inline void note(self, uint64_t wall) noexcept:
        """A packet is delivered, or a part of one, which its sender has written at that time."""
        self.delivered = True
        if wall > self.stamp and <int64_t>wall > 0:
            self.stamp = wall

    cdef inline void place(self, Message message, int degree, unsigned row) noexcept:
        """A packet has the next place in the order."""
        message.degree = degree
        message.source = self.position_of[row]
        message.seqno = self.next
        message.stamp = self.stamp
        self.next += 1

    cdef int allow(self, Py_ssize_t written) noexcept
    cdef bint append(self, Message message, Py_ssize_t size, Py_ssize_t* sent) except -1
    cdef int put(self, Message message, Py_ssize_t whole, Py_ssize_t* sent, unsigned char** body) except NO_CODE
    cdef int pass_up(self, Message message, int kind, int degree, unsigned row, uint64_t wall) except NO_CODE
    cdef Message copied(self, ring_entry* entry, int kind)
    cdef int submit_more(self) except -1
    cdef int drain(self, int most=*) except -1
    cdef int deliver(self, ring_entry* entry) except NO_CODE
    cdef int stopped_at(self, int found) except -1
    cdef int report(self) except -1
    cdef int meet_fence(self) except -1
    cdef int end_view(self) except -1

    cdef inline int advance(self) except -1:
        """All that was taken has run: reads do not wait for it, and the others may overwrite it, if there is room for more here."""
        cdef ring_member* m = &self.segment.member
        m.handed = m.next
        if self.has_credit and m.next != self.published:
            self.published = m.next
            ring_advance(m)
        return 0

    cdef int listen(self) except -1
    cdef int leave_order(self) except -1
    cpdef list hand_over(self, object view, object it)
