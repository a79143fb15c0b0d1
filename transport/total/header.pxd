"""The header of each of TOTAL's packets: its kinds, its fields, and how they are written."""

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.degree cimport AVAILABLE, NO_FLAGS
from orcalike.transport.wire.bytes cimport store16, store32, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    REQUEST = 1
    ORDERED = 2
    EXPECT = 3          # what its sender expects and holds
    ACCEPT = 4          # what is accepted
    OTHER = 5           # not TOTAL's: one byte, then what the layer above sent
    LENIENT = 0x80      # beside the kind: the packet's degree is AVAILABLE
    # kind (1), degree (1), and what stands at ...
    POSITION_AT = 2        # of the sender (2)
    TENTATIVE_AT = 4    # how many packets up to this one are tentative (4)
    COUNTER_AT = 8      # (8)
    NUMBER_AT = 16      # ORDERED: its seqno; ACCEPT: what is accepted; else what a member expects next (8)
    STAMP_AT = 24       # (8)
    STABLE_AT = 32      # all members hold what is below (8)
    HEADER = 40
    WHOLE_AT = 4        # from a member: whether its state is complete (4)
    HOLDS_AT = 24       # from a member: the first seqno that it does not hold (8)
    GONE = 0xFFFF       # as a position: the sender has left; its incarnation stands instead of the counter
    NON_MEMBER = -1     # as a position: no member
    DEPARTED = -2       # as a position, and below: members that have left (`core.departed`), in their order


cdef inline int departed_position(int index) noexcept:
    """The position of a member that has left, by its index in `core.departed`, and the other way round."""
    return DEPARTED - index


cdef inline int kind_of(const unsigned char* header) noexcept:
    return header[0] & ~LENIENT


cdef inline int degree_of(const unsigned char* header) noexcept:
    return header[1] | AVAILABLE if header[0] & LENIENT else header[1]


cdef inline unsigned char* store_header(Message message, int kind, int degree, int position, uint64_t counter,
                                        uint64_t number) except NULL:
    """Put a header in front of a message; returns it, for what else it is to say."""
    cdef unsigned char* header = message.push(HEADER)
    header[0] = <unsigned char>(kind | LENIENT if degree & AVAILABLE else kind)
    header[1] = <unsigned char>(degree & NO_FLAGS)
    store16(header + POSITION_AT, <unsigned short>position)
    store32(header + TENTATIVE_AT, 0)
    store64(header + COUNTER_AT, counter)
    store64(header + NUMBER_AT, number)
    store64(header + STAMP_AT, 0)
    store64(header + STABLE_AT, 0)
    return header
