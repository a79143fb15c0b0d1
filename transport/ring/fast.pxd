"""A packet that nothing is before, put into the order past the layers: RING's part of that."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.mapped_order cimport MappedOrder
from orcalike.transport.drivers.ring_segment cimport RING_ROWS, ring_advance, ring_member, ring_wake, ring_wake_all
from orcalike.transport.ring.holders cimport Holders
from orcalike.transport.ring.incoming cimport Incoming
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    # A packet in the lane: degree (1) | is it a part (1) | 0 (2) | where the part begins (4) | the writer's clock (8) | body
    LANE_HEADER = 16
    MUCH = 512                  # bytes of a packet of a member that writes much


cdef class FastOrder(MappedOrder):
    cdef Holders holders            # members whose word counts for resilience
    cdef Ring unordered
    cdef Incoming incoming          # copies of others' packets, and what is not whole here
    cdef bint draining
    cdef bint at_fence              # all of the view is delivered, and it has ended
    cdef bint delivered             # something was, since this member listened last
    cdef int mode                   # as TOTAL's
    cdef unsigned char* written     # the packet that is written, in the own lane, from its header on
    cdef Py_ssize_t written_size    # of its body
    cdef uint64_t spares            # as a message's: of all that was appended since the others were woken last

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

    cdef inline int advance(self) except -1:
        """All that was taken has run: reads do not wait for it, and the others may overwrite it, if there is room for more here."""
        cdef ring_member* m = &self.segment.member
        m.handed = m.next
        if self.has_credit and m.next != self.published:
            self.published = m.next
            if ring_advance(m):
                self.damaged("applied")
        return 0

    cdef inline int wake_others(self) except -1:
        """Wake the members that want news of what was appended here, and those whose calls it has let go on."""
        if self.core.due == ~<uint64_t>0:       # also those that want no news now
            self.core.due = 0
            ring_wake_all(&self.segment.member)
        else:
            ring_wake(&self.segment.member, ~self.spares, self.rows_due() if self.core.due else 0)
        self.spares = ~<uint64_t>0
        self.appended = False
        return 0

    cdef uint64_t rows_due(self) noexcept
    cdef Message take_own(self, unsigned char* packet, Py_ssize_t size)
    cdef int allow(self, Py_ssize_t written) noexcept
    cdef int drain(self, int most=*) except -1
