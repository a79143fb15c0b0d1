# cython: allow_none_for_extension_args=False
"""FAST: the way of a lone packet past the layers, where nothing is before it (Horus 4.11: H81).

What the layers would do with such a packet is known: so PACK writes it into the own lane, with the headers that they would
put before it, and swaps it into the order. If it is the next one there, PACK hands it up at once; else it comes with
what is before it, through the layers. Whatever else is the case goes through them from the start, and nothing was done then.

A layer between says in `fast` what it puts before each cast, if it does nothing else with casts and will not in this view.
"""

from libc.string cimport memcpy, memset

from orcalike.transport.drivers.ring_segment cimport ring_append, ring_applied_own, ring_has_news, ring_member, ring_room, ring_wake
from orcalike.transport.layers.ring cimport LANE_HEADER, MUCH, SharedOrder
from orcalike.transport.wire.bytes cimport store64
from orcalike.transport.wire.message cimport Message


cdef class Fast:
    """The way into one order, in one view."""

    def __init__(self, SharedOrder order, bytes headers):
        if len(headers) > HEADERS_MAX:
            raise ValueError(f"{len(headers)} bytes of headers: {HEADERS_MAX} are allowed")
        self.order, self.before = order, len(headers)
        memcpy(self.headers, <const unsigned char*>headers, self.before)

    cdef unsigned char* room(self, Py_ssize_t size, unsigned char degree) except? NULL:
        """Where to write up to `size` bytes, if they can be put into the order, and nothing is before them; else NULL."""
        cdef SharedOrder order = self.order
        cdef ring_member* m
        cdef unsigned char* found = NULL
        if order.segment is None or not order.may_cast() or order.unordered.count:
            return NULL
        if degree and not order.holders.have_met(degree | order.mode):
            return NULL
        m = &order.segment.member
        if ring_has_news(m) or ring_room(m, <unsigned>(LANE_HEADER + self.before + size), &found):
            return NULL
        memset(found, 0, 8)
        found[0] = degree
        memcpy(found + LANE_HEADER, self.headers, self.before)
        self.packet = found
        order.core.mark("W1")
        return found + LANE_HEADER + self.before

    cdef bint append(self, Py_ssize_t size) except -1:
        """Put what was written into the order; False if there is no place in it now."""
        cdef SharedOrder order = self.order
        store64(self.packet + 8, <unsigned long long>order.core.wall)
        if ring_append(&order.segment.member, <unsigned>(LANE_HEADER + self.before + size), 1) < 0:
            return False
        self.size = size
        order.full_since = 0
        order.appended = True
        return True

    cdef Message take(self):
        """It, if it is the next one in the order; else None, and what is before it is handed up."""
        cdef SharedOrder order = self.order
        cdef Message packet
        order.core.mark("W3")
        if not ring_applied_own(&order.segment.member):
            order.allow(LANE_HEADER + self.before + self.size)
            order.core.schedule(order)
            order.drain()
            return None
        if self.size >= MUCH:
            order.allow(self.size)
        packet = order.incoming.in_place(self.packet + LANE_HEADER + self.before, self.size)
        order.note(<unsigned long long>order.core.wall)
        order.place(packet, self.packet[0], order.segment.member.row)
        return packet

    cdef int end(self) except -1:
        """It has run: say so to the others, and wake them. Where more is to be done, the order goes on as after other packets."""
        cdef SharedOrder order = self.order
        if order.scheduled or order.segment is None:
            return 0
        if not order.armed or order.core.dozes or not order.may_append or order.unordered.count or order.left is not None:
            order.core.schedule(order)
            return 0
        order.advance()
        order.appended = order.delivered = False
        ring_wake(&order.segment.member)
        return 0
