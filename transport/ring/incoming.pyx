# cython: allow_none_for_extension_args=False
"""What comes of lanes: of this member's own in place, of others' in memory of this member's own.

A packet of another member is copied, since its lane is written anew. A few copies are used one after the
other, which find their place in the processor's cache: one that nothing holds any more is filled again.

A packet over a quarter of a lane is put into the order in parts, between which others' packets come. It counts
at the place of its last part. Each part says where it begins.

What is not whole when its view ends is dropped by all members, which have the same of it, and its sender begins anew
in the next view. So a joiner needs nothing of what came before it, and of a sender that is out nothing stays.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from orcalike.transport.wire.message cimport Message, Py_REFCNT


cdef class Incoming:
    """Copies of others' packets; of these, and of own ones, what is not whole yet."""

    def __cinit__(self):
        self.copies = [Message() for _ in range(AT_ONCE)]
        self.own, self.other = Message.view(NULL, 0), Message.view(NULL, 0)
        self.packets = {}

    cdef Message copy(self, uint64_t number, const unsigned char* packet, Py_ssize_t size):
        """A packet that is whole; `number` is its place in the order."""
        cdef Message message = <Message>self.copies[<Py_ssize_t>(number & (AT_ONCE - 1))]
        if Py_REFCNT(<PyObject*>message) > 2 or not message.fill_again(size):
            message = Message.new(size)
        memcpy(message.room(size), packet, size)
        message.stop += size
        return message

    cdef Message in_place(self, unsigned char* packet, Py_ssize_t size):
        """An own packet. What stands above holds the last one, so there are two messages, used one after the other."""
        self.own, self.other = self.other, self.own
        if Py_REFCNT(<PyObject*>self.own) > 1:
            self.own = Message.view(packet, size)
        else:
            self.own.view_again(packet, size)
        return self.own

    cdef Message add(self, unsigned row, int kind, uint32_t start, const unsigned char* part, Py_ssize_t size):
        """The packet with one part more; None if it is no part that can come next."""
        cdef Message packet = self.packets.get(row)
        if packet is None:
            packet = Message.new(size)
        if kind not in (MORE, LAST) or packet.size() != start or packet.size() + size > PACKET_MAX:
            return None
        memcpy(packet.room(size), part, size)
        packet.stop += size
        if kind == MORE:
            self.packets[row] = packet
        else:
            self.packets.pop(row, None)
        return packet

    cdef int clear(self) except -1:
        self.packets.clear()
        return 0

    def size(self):
        """Bytes that are kept."""
        return sum([len(packet) for packet in self.packets.values()])
