"""What comes of lanes."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.wire.message cimport MESSAGE_MAX, Message

cdef enum:
    AT_ONCE = 64                        # packets that are delivered before what came of them is applied
    PACKET_MAX = MESSAGE_MAX + 2048     # with what the layers above put around a message
    # What a packet in a lane is.
    WHOLE = 0
    MORE = 1                            # a part, behind which another comes
    LAST = 2


cdef class Incoming:
    cdef list copies                    # AT_ONCE messages, used one after the other
    cdef Message own, other             # in place, in the own lane: the last that was handed up, and the one before
    cdef dict packets                   # by row: a Message, as far as it has come
    cdef Message copy(self, uint64_t number, const unsigned char* packet, Py_ssize_t size)
    cdef Message in_place(self, unsigned char* packet, Py_ssize_t size)
    cdef Message add(self, unsigned row, int kind, uint32_t start, const unsigned char* part, Py_ssize_t size)
    cdef int clear(self) except -1
