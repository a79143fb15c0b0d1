# cython: allow_none_for_extension_args=False
"""What a packet of PACK looks like."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.wire.bytes cimport get_varint, load32, load64
from orcalike.transport.wire.message cimport Message


cdef Message message_in(Message packet, uint64_t ticket):
    """The message of that number in a packet, which it borrows; None if it is not there."""
    cdef const unsigned char* p = packet.data()
    cdef const unsigned char* end = p + packet.size()
    cdef uint32_t size
    cdef uint64_t i
    if packet.size() < HEADER or ticket < load64(p) or is_part(load32(p + 8)):
        return None
    i = ticket - load64(p)
    if i >= load32(p + 8):
        return None
    p += HEADER
    while True:
        p = get_varint(p, end, &size)
        if p is NULL or size > <size_t>(end - p):
            return None
        if i == 0:
            return Message.view(<unsigned char*>p, size)
        i -= 1
        p += size
