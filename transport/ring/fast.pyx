# cython: allow_none_for_extension_args=False
"""A packet that nothing is before, put into the order past the layers (transport/fast.pyx): RING's part of that.

It lies in the own lane as others do, and is handed up from there, as they are.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from orcalike.transport.drivers.mapped_order cimport MappedOrder
from orcalike.transport.drivers.ring_segment cimport (
    RING_ROWS, ring_append, ring_applied_own, ring_has_news, ring_member, ring_room,
)
from orcalike.transport.wire.bytes cimport store64
from orcalike.transport.wire.message cimport Message


cdef class FastOrder(MappedOrder):
    """An order in memory, into which PACK puts packets past the layers between."""

    cdef unsigned char* fast_room(self, Py_ssize_t size, unsigned char degree) except? NULL:
        cdef ring_member* m
        cdef unsigned char* found = NULL
        if self.segment is None or not self.may_cast() or self.unordered.count:
            return NULL
        if degree and not self.holders.have_met(degree | self.mode):
            return NULL
        m = &self.segment.member
        if ring_has_news(m) or ring_room(m, <unsigned>(LANE_HEADER + size), &found):
            return NULL
        memset(found, 0, 8)
        found[0] = degree
        self.written = found
        self.core.mark("W1")
        return found + LANE_HEADER

    cdef bint fast_append(self, Py_ssize_t size, uint64_t spares) except -1:
        store64(self.written + 8, <uint64_t>self.core.wall)
        if ring_append(&self.segment.member, <unsigned>(LANE_HEADER + size), 1) < 0:
            return False
        self.written_size = size
        self.full_since = 0
        self.spares &= spares
        self.appended = True
        return True

    cdef Message fast_take(self):
        cdef Message packet
        self.core.mark("W3")
        packet = self.take_own(self.written, self.written_size)
        if packet is None:
            self.allow(self.written_size)
            self.core.schedule(self)
            self.drain()
        elif self.written_size >= MUCH:
            self.allow(self.written_size)
        return packet

    cdef Message take_own(self, unsigned char* packet, Py_ssize_t size):
        """The packet that this member has appended last, in place, if all before it has been delivered here; else None."""
        cdef Message message
        if not ring_applied_own(&self.segment.member):
            return None
        message = self.incoming.in_place(packet + LANE_HEADER, size)
        self.note(<uint64_t>self.core.wall)
        self.place(message, packet[0], self.segment.member.row)
        return message

    cdef int fast_end(self) except -1:
        # Another thread that has gone on in this one's place has RING go on instead (pump: `take_place`, `send_out`).
        if self.scheduled or self.segment is None:
            return 0
        if not self.armed or self.core.dozes or not self.may_append or self.unordered.count or self.left is not None:
            self.core.schedule(self)    # more is to be done
            return 0
        self.advance()
        self.delivered = False
        self.wake_others()
        return 0

    cdef uint64_t rows_due(self) noexcept:
        """The rows of the members that `core.due` says; from here on none is."""
        cdef unsigned row
        cdef uint64_t rows = 0, members = self.segment.member.members
        for row in range(<unsigned>RING_ROWS):
            if members >> row & 1 and self.core.due >> self.position_of[row] & 1:
                rows |= <uint64_t>1 << row
        self.core.due = 0
        return rows

    cdef int allow(self, Py_ssize_t written) noexcept:
        """Set what may be delivered in this input: of each other member as much as this one writes, if that is much."""
        return 0                        # RING does

    cdef int drain(self, int most=0) except -1:
        """Deliver what is there, up to the fence, or so many packets of it: the rest in the next turn."""
        raise NotImplementedError
