"""Decoding of what other endpoints send in msgpack: greetings, control messages, cuts.

Nothing is made of the bytes before all of them were looked at: how deep they are nested, how many
elements they have, and that each length is one of bytes that are there. A text from outside that
people see is bounded and ASCII (`shown`); nothing else of a message is ever put into a text.
"""

from msgpack import unpackb

from orcalike.transport.errors import ProtocolError

from libc.stdint cimport uint64_t

from orcalike.transport.wire.read_buffer cimport ReadBuffer

cdef enum:
    TEXT_MAX = 4096             # bytes of a string
    SHOWN_MAX = 200             # characters of a text from outside that people see

DEPTH_MAX = 8
ELEMENTS_MAX = 32768
"""In one message; a view of as many members as there can be, and a cut for them, has 16,000."""

cdef enum Fault:
    NO_MSGPACK
    TOO_DEEP
    TOO_MANY

cdef tuple FAULTS = ("that is not msgpack", "that is nested too deep", "of too many elements")


cdef struct Scan:
    const unsigned char* end
    Py_ssize_t elements         # that may still come
    Fault fault


def unpack(data, str what, int depth=DEPTH_MAX, Py_ssize_t elements=ELEMENTS_MAX):
    """The one value in `data`, which errors call `what`; raises ProtocolError for anything else.

    Containers lie in one another `depth` deep at the most, and have so many elements in all. There
    are no extension types, and keys are text or bytes.
    """
    cdef ReadBuffer read = ReadBuffer(data)
    cdef Scan scan
    scan.fault = NO_MSGPACK
    scan.elements = elements
    if read.size:
        scan.end = read.start + read.size
        if skip(read.start, depth, &scan) == scan.end:
            try:
                return unpackb(data, max_ext_len=0, max_str_len=TEXT_MAX)
            except Exception:           # of many kinds, and each means the same
                scan.fault = NO_MSGPACK
    raise ProtocolError(f"{what} {FAULTS[scan.fault]}")


def shown(str text):
    """A text from outside as people may see it: in ASCII, without control characters, not long."""
    text = ascii(text[:SHOWN_MAX + 1])
    text = text[1:len(text) - 1]
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


cdef const unsigned char* skip(const unsigned char* p, int depth, Scan* scan) noexcept nogil:
    """The byte after the value at `p`; NULL, and why, where there is no value that may be.

    It goes by the bytes that are there: no length or count is believed that is larger.
    """
    cdef unsigned char tag
    if p >= scan.end:
        return NULL
    tag = p[0]
    p += 1
    if tag < 0x80 or tag >= 0xE0 or tag == 0xC0 or tag == 0xC2 or tag == 0xC3:
        return p
    if tag < 0x90:
        return skip_elements(p, 2 * (tag & 0x0F), depth, scan)
    if tag < 0xA0:
        return skip_elements(p, tag & 0x0F, depth, scan)
    if tag < 0xC0:
        return skip_bytes(p, tag & 0x1F, scan)
    if tag == 0xCA:
        return skip_bytes(p, 4, scan)
    if tag == 0xCB:
        return skip_bytes(p, 8, scan)
    if 0xCC <= tag <= 0xD3:
        return skip_bytes(p, 1 << (tag & 3), scan)
    if 0xC4 <= tag <= 0xC6:
        return skip_counted(p, 1 << (tag - 0xC4), 0, depth, scan)
    if 0xD9 <= tag <= 0xDB:
        return skip_counted(p, 1 << (tag - 0xD9), 0, depth, scan)
    if tag >= 0xDC:
        return skip_counted(p, 4 if tag & 1 else 2, 2 if tag >= 0xDE else 1, depth, scan)
    return NULL                         # an extension, or no tag at all


cdef const unsigned char* skip_counted(const unsigned char* p, int width, int each, int depth,
                                       Scan* scan) noexcept nogil:
    """A length or count of `width` bytes, then so many bytes (`each` is 0) or elements."""
    cdef uint64_t size = 0
    cdef int i
    if scan.end - p < width:
        return NULL
    for i in range(width):
        size = size << 8 | p[i]
    if each:
        return skip_elements(p + width, each * size, depth, scan)
    return skip_bytes(p + width, size, scan)


cdef const unsigned char* skip_elements(const unsigned char* p, uint64_t count, int depth,
                                        Scan* scan) noexcept nogil:
    if depth == 0:
        scan.fault = TOO_DEEP
        return NULL
    if count > <uint64_t>scan.elements:
        scan.fault = TOO_MANY
        return NULL
    scan.elements -= count
    while count > 0 and p is not NULL:
        p = skip(p, depth - 1, scan)
        count -= 1
    return p


cdef const unsigned char* skip_bytes(const unsigned char* p, uint64_t size,
                                     Scan* scan) noexcept nogil:
    return p + size if size <= <uint64_t>(scan.end - p) else NULL
