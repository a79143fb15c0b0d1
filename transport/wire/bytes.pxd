"""Little-endian integers and varints in a byte buffer; inlined wherever they are used."""

from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

cdef extern from "<endian.h>" nogil:
    uint16_t htole16(uint16_t)
    uint32_t htole32(uint32_t)
    uint64_t htole64(uint64_t)
    uint16_t le16toh(uint16_t)
    uint32_t le32toh(uint32_t)
    uint64_t le64toh(uint64_t)


cdef inline void store16(unsigned char* p, uint16_t value) noexcept nogil:
    value = htole16(value)
    memcpy(p, &value, 2)


cdef inline void store32(unsigned char* p, uint32_t value) noexcept nogil:
    value = htole32(value)
    memcpy(p, &value, 4)


cdef inline void store64(unsigned char* p, uint64_t value) noexcept nogil:
    value = htole64(value)
    memcpy(p, &value, 8)


cdef inline uint16_t load16(const unsigned char* p) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, p, 2)
    return le16toh(value)


cdef inline uint32_t load32(const unsigned char* p) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, p, 4)
    return le32toh(value)


cdef inline uint64_t load64(const unsigned char* p) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, p, 8)
    return le64toh(value)


# A varint has seven bits a byte, the lowest first; the last byte's top bit is clear (at most five bytes).
cdef enum:
    VARINT_MAX = 5


cdef inline unsigned char* put_varint(unsigned char* p, uint32_t value) noexcept nogil:
    while value >= 0x80:
        p[0] = <unsigned char>(value | 0x80)
        value >>= 7
        p += 1
    p[0] = <unsigned char>value
    return p + 1


cdef inline unsigned char* put_long_size(unsigned char* p, uint32_t size) noexcept nogil:
    """Put the size of what lies behind one byte in front of it, where it takes more; the byte after all."""
    cdef unsigned char varint[VARINT_MAX]
    cdef Py_ssize_t width = put_varint(varint, size) - varint
    memmove(p + width, p + 1, size)
    memcpy(p, varint, width)
    return p + width + size


cdef inline const unsigned char* get_varint(
    const unsigned char* p, const unsigned char* end, uint32_t* value
) noexcept nogil:
    """The byte after the varint, or NULL where it is cut short or too long."""
    if p < end and p[0] < 0x80:         # nearly all
        value[0] = p[0]
        return p + 1
    return get_long_varint(p, end, value)


cdef inline const unsigned char* get_long_varint(
    const unsigned char* p, const unsigned char* end, uint32_t* value
) noexcept nogil:
    """The same for one of more bytes."""
    cdef uint64_t result = 0
    cdef int shift = 0
    while p < end and shift < 35:
        result |= <uint64_t>(p[0] & 0x7F) << shift
        if not p[0] & 0x80:
            value[0] = <uint32_t>result
            return p + 1 if result <= 0xFFFFFFFFu else NULL
        p += 1
        shift += 7
    return NULL
