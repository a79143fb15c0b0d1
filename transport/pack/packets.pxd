"""What a packet of PACK looks like: `layers.pack` says it."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.wire.bytes cimport put_long_size
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADER = 12                         # number of its first message (8) | messages (4)


cdef inline bint is_part(uint32_t messages) noexcept:
    """Whether it is a part of a packet: of that the number has its top bit set."""
    return messages >> 31


cdef inline unsigned char* end_message(unsigned char* length, unsigned char* stop) noexcept:
    """A message was written up to `stop`, behind a byte for its length: where it ends."""
    cdef Py_ssize_t size = stop - length - 1
    if size < 0x80:
        length[0] = <unsigned char>size
        return stop
    return put_long_size(length, <uint32_t>size)


cdef Message message_in(Message packet, uint64_t ticket)
