"""The header of each of TOTAL's packets: its kinds, its fields, and how they are written."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.wire.bytes cimport store16, store32, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    REQUEST = 1
    ORDERED = 2
    EXPECT = 3          # what its sender expects and holds
    ACCEPT = 4          # what is accepted
    OTHER = 5           # not TOTAL's: one byte, then what the layer above sent
    AVAILABLE = 256     # as in `transport.degree`
    LENIENT = 0x80      # beside the kind: the packet's degree is AVAILABLE
    # kind (1), degree (1), sender's place (2), tentative (4), counter (8), number (8), stamp (8),
    # stable (8). The number is the seqno of an ordered packet, and of what a member expects else,
    # with what it holds in the stamp's place. "Tentative" is how many packets up to this one are;
    # from a member, whether its state is complete.
    HEADER = 40
    GONE = 0xFFFF       # as a place: the sender has left; its incarnation is in the counter's place


cdef inline int kind_of(const unsigned char* header) noexcept:
    return header[0] & ~LENIENT


cdef inline int degree_of(const unsigned char* header) noexcept:
    return header[1] | AVAILABLE if header[0] & LENIENT else header[1]


cdef inline int store_header(Message message, int kind, int degree, int place, uint64_t counter,
                             uint64_t number) except -1:
    cdef unsigned char* header = message.push(HEADER)
    header[0] = <unsigned char>(kind | LENIENT if degree & AVAILABLE else kind)
    header[1] = <unsigned char>(degree & 0xFF)
    store16(header + 2, <unsigned short>place)
    store32(header + 4, 0)
    store64(header + 8, counter)
    store64(header + 16, number)
    store64(header + 24, 0)
    store64(header + 32, 0)
    return 0
