"""PACK: many small messages in one packet."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.pack.fast cimport FastPackets
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    MESSAGES_MAX = 65536            # messages of a member that may be under way

cdef class Pack(FastPackets):
    cdef Message kept               # one that was cast, and nothing holds any more; or None
    cdef Py_ssize_t packed          # messages in it
    cdef unsigned char open_degree  # the largest of their degrees
    cdef unsigned char next_degree  # of the message that is committed next
    cdef uint64_t open_spares       # what the open packet spares, as a message does
    cdef uint64_t next_spares       # of the message that is committed next; 0: it may be about anything
    cdef Ring closed                # packets that are full
    cdef readonly Py_ssize_t gathered   # bytes in packets that are closed and not cast yet
    cdef readonly Py_ssize_t size   # a packet is closed at this size
    cdef readonly Py_ssize_t window_messages, window_bytes
    cdef Message large              # a packet that is being cast part by part, or None
    cdef Py_ssize_t sent            # bytes of it that were cast
    cdef Py_ssize_t parts_under_way
    cdef dict partial               # by incarnation: what has come of a sender's large packet
    cdef list coming                # of the state: (sender, bytes) that are still to come, or None
    cdef tuple members              # of the view
    cdef Py_ssize_t full_bytes      # what is small waits from here on
    cdef Py_ssize_t claims          # messages that wait for much room
    cdef int position                  # this member's position in the view
    cdef bint gathers               # the open packet takes more messages, and leaves soon
    # What is handed up when the upcalls have returned: the packet that was begun, and what comes then:
    # packets, (self, packet of a sender that has left, `core.departed` as it was), (function, *args).
    cdef Message opened             # or None
    cdef uint32_t unpacked          # messages of it that were handed up
    cdef uint64_t number            # of its first message
    cdef Py_ssize_t begin, at, end  # of its messages, and how far they were handed up
    cdef Ring agenda
    cdef Layer next_handing         # the layer that hands up after this one, or None
    cdef tuple departed             # `core.departed` as it is, where the packet has another; else None
    cdef tuple members_above        # of the view that was handed up
    cdef int position_above            # this member's position in it

    cdef unsigned char* reserve(self, Py_ssize_t size) except NULL
    cdef int commit(self, unsigned char* stop) except -1
    cdef int put(self, const unsigned char* message, Py_ssize_t size, unsigned char degree, uint64_t spares) except -1
    cdef bint leaves_now(self) noexcept
    cdef bint has_other_kind(self, unsigned char degree) noexcept

    cdef inline bint mixes(self, unsigned char degree) noexcept:
        """Whether a message of that degree has no place among those of the open packet."""
        return self.open_degree != 0 and self.has_other_kind(degree)

    cdef int raise_degree(self, unsigned char degree) except -1

    cdef inline bint is_full(self) noexcept:
        """Whether a small message, of less than `SPARE` bytes, must wait."""
        return (<Py_ssize_t>(self.ticket - self.returned) >= self.window_messages
                or self.under_way + self.gathered >= self.full_bytes)

    cpdef bint has_room_for(self, Py_ssize_t size)
    cdef int claim(self) except -1
    cdef int unclaim(self) except -1
    cdef bint has_ample_room(self) noexcept
    cdef Message take_open(self)
    cdef int close(self) except -1
    cdef int put_off(self, object item) except -1
    cdef int announce(self) except -1
    cdef int open(self, Message packet) except -1
    cdef int hand_up_messages(self) except -1
    cdef int hand_up_next(self, object item) except -1
    cdef int close_opened(self) except -1
    cdef int accuse(self, Message packet) except -1
    cdef complain(self, Message packet, str why)
    cdef bint cast_parts(self) except -1
    cdef int up_part(self, Message part, uint32_t count) except -1
    cdef object sender_of(self, int position)
    cdef int come_back(self, Py_ssize_t size, uint32_t count) except -1
    cpdef cast_packets(self)
    cdef bint has_packets(self) noexcept
    cpdef bint take_back(self, uint64_t ticket, bytes instead)
