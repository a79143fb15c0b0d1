"""SipHash-2-4 with tags of 16 bytes: a keyed hash for short messages (Aumasson and Bernstein, 2012).

The thread of the heartbeats needs one that takes no interpreter lock. A tag says that a process with
the key has made the message; it hides nothing.
"""

from libc.stdint cimport uint64_t

from orcalike.transport.wire.bytes cimport load64, store64


cdef void siphash(const unsigned char* key, const unsigned char* data, Py_ssize_t size,
                  unsigned char* tag) noexcept nogil:
    """Write the tag of `size` bytes under a key of 16."""
    cdef uint64_t first = load64(key), second = load64(key + 8), word, last
    cdef uint64_t v[4]
    cdef Py_ssize_t i
    v[0] = first ^ 0x736f6d6570736575UL
    v[1] = second ^ 0x646f72616e646f6dUL ^ 0xee
    v[2] = first ^ 0x6c7967656e657261UL
    v[3] = second ^ 0x7465646279746573UL
    for i in range(size // 8):
        word = load64(data + 8 * i)
        v[3] ^= word
        mix(v, 2)
        v[0] ^= word
    last = <uint64_t>size << 56
    for i in range(size % 8):
        last |= <uint64_t>data[size - size % 8 + i] << 8 * i
    v[3] ^= last
    mix(v, 2)
    v[0] ^= last
    v[2] ^= 0xee
    mix(v, 4)
    store64(tag, v[0] ^ v[1] ^ v[2] ^ v[3])
    v[1] ^= 0xdd
    mix(v, 4)
    store64(tag + 8, v[0] ^ v[1] ^ v[2] ^ v[3])


cdef void mix(uint64_t* v, int rounds) noexcept nogil:
    cdef int i
    for i in range(rounds):
        v[0] += v[1]
        v[1] = rotated(v[1], 13) ^ v[0]
        v[0] = rotated(v[0], 32)
        v[2] += v[3]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] += v[3]
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] += v[1]
        v[1] = rotated(v[1], 17) ^ v[2]
        v[2] = rotated(v[2], 32)


cdef inline uint64_t rotated(uint64_t word, int bits) noexcept nogil:
    return word << bits | word >> (64 - bits)


def tag_of(bytes key not None, bytes data not None):
    """The tag of a message, for tests. Raises ValueError for a key that has not 16 bytes."""
    cdef unsigned char tag[SIP_TAG_SIZE]
    if len(key) != SIP_KEY_SIZE:
        raise ValueError(f"a key has {SIP_KEY_SIZE} bytes")
    siphash(key, data, len(data), tag)
    return (<char*>tag)[:SIP_TAG_SIZE]
