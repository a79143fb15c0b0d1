"""Packets in parts: what has come of those that are too large for their senders' lanes."""

from libc.stdint cimport uint32_t

from orcalike.transport.wire.message cimport MESSAGE_MAX, Message

cdef enum:
    PACKET_MAX = MESSAGE_MAX + 2048     # with what the layers above put around a message
    # What a packet in a lane is.
    WHOLE = 0
    MORE = 1                            # a part, behind which another comes
    LAST = 2


cdef class Parts:
    cdef dict packets                   # by row: a Message, as far as it has come
    cdef Message add(self, unsigned row, int kind, uint32_t start, const unsigned char* part, Py_ssize_t size)
    cdef int clear(self) except -1
