# cython: allow_none_for_extension_args=False
"""Packets in parts: what has come of those that are too large for their senders' lanes.

A packet over a quarter of a lane is put into the order in parts, between which others' packets come. It counts
at the place of its last part. Each part says where it begins.

What is not whole when its view ends is dropped by all members, which have the same of it, and its sender begins anew
in the next view. So a joiner needs nothing of what came before it, and of a sender that is out nothing stays.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from orcalike.transport.wire.message cimport Message


cdef class Parts:
    """What a member keeps of others' packets, and of its own, until they are whole."""

    def __cinit__(self):
        self.packets = {}

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
