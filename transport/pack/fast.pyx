# cython: allow_none_for_extension_args=False
"""A message that nothing is before, put into the order past the layers (transport/fast.pyx): PACK's part of that.

It is a packet of one message, as it is if it goes through the layers: with the same bytes, at its place in the order. It is
handed up at once if it is the next one there, and nothing waits to be handed up.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from orcalike.transport.fast cimport HEADERS_MAX, FastLayer
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.pack.packets cimport HEADER, end_message
from orcalike.transport.wire.bytes cimport VARINT_MAX, get_varint, store32, store64
from orcalike.transport.wire.message cimport Message


cdef class FastPackets(Layer):
    """What this member has cast, by number; and casts that meet nothing before them."""

    cdef unsigned char* find_room(self, Py_ssize_t size, unsigned char degree) except? NULL:
        """Room in the order for a message of `size` bytes, if nothing is before it or in its way; else NULL."""
        cdef unsigned char* p = NULL
        if not self.has_asked:
            self.has_asked = True
            self.ask_below()
        if self.way is not None and size <= self.fragment:
            p = self.way.fast_room(self.before + HEADER + VARINT_MAX + size, degree)
        # Looked at last: what is above may have let other threads put something into the open packet.
        if (p is NULL or self.ticket != self.returned or self.packet is not None or self.hands_up
                or not self.core.is_quiet()):
            return NULL
        memcpy(p, self.headers, self.before)
        p += self.before
        self.written = p
        return p + HEADER + 1

    cdef int ask_below(self) except -1:
        """Ask the layers below for a way past them in this view."""
        cdef object found = self.below.fast() if self.allows_fast else None
        cdef bytes headers
        if found is not None and len(<bytes?>found[1]) <= HEADERS_MAX:
            headers = found[1]
            memcpy(self.headers, <const unsigned char*>headers, len(headers))
            self.way, self.before = <FastLayer?>found[0], len(headers)
        return 0

    cdef bint cast_fast(self, const unsigned char* message, Py_ssize_t size, unsigned char degree, uint64_t spares) except -1:
        """Put a message right into the order, as a packet of its own; `hand_up_fast` comes next. False if it cannot be.

        `spares`: as a message's.
        """
        cdef unsigned char* p = self.find_room(size, degree)
        cdef unsigned char* stop
        if p is NULL:
            return False
        memcpy(p, message, size)
        stop = end_message(self.written + HEADER, p + size)
        store64(self.written, self.ticket)
        store32(self.written + 8, 1)
        self.note_degree(degree)        # which may raise, so before the message is there for others
        if not self.way.fast_append(self.before + (stop - self.written), spares):
            return False
        self.ticket += 1
        self.under_way = stop - self.written
        self.fast_casts += 1
        return True

    cdef int hand_up_fast(self) except -1:
        cdef Message packet = self.way.fast_take()
        cdef uint32_t size
        if packet is None:
            return 0
        packet.ticket, packet.count = self.returned, 1
        packet.start = get_varint(packet.base + self.before + HEADER, packet.base + packet.stop, &size) - packet.base
        self.under_way = 0
        self.returned += 1
        if self.packet is not None:     # what was cast since waits for it
            self.ready = True
            self.core.again(self)
        self.core.mark("W11")
        self.above.up_cast(packet)      # the last that is done with it: another thread may go on meanwhile
        self.core.mark("W12")
        return 0

    cdef int end_fast(self) except -1:
        return self.way.fast_end() if self.way is not None else 0
