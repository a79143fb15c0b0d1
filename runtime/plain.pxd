"""Plain values in msgpack's own bytes, written and read inline; `marshal` does the rest.

Plain are: None, bool, float, int from -2**63 to 2**64 - 1, str, bytes, and tuples, lists and dicts
of plain values. Only the exact types count: an IntEnum is not an int here. Simple are those of them
that `stream_encoder` takes at once: all but lists and dicts, and tuples of up to 15 simple values in two
levels.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "<endian.h>" nogil:
    uint64_t htobe64(uint64_t)
    uint16_t be16toh(uint16_t)
    uint32_t be32toh(uint32_t)
    uint64_t be64toh(uint64_t)

# With PyObject* and not object, so that Cython counts no references and checks no errors here.
cdef extern from "Python.h":
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)
    PyObject* PyErr_Occurred()
    void PyErr_Clear()
    bint PyLong_CheckExact(PyObject*)
    bint PyUnicode_CheckExact(PyObject*)
    bint PyFloat_CheckExact(PyObject*)
    bint PyBytes_CheckExact(PyObject*)
    bint PyTuple_CheckExact(PyObject*)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*)
    unsigned long long PyLong_AsUnsignedLongLong(PyObject*)
    PyObject* PyLong_FromLongLong(long long)
    PyObject* PyLong_FromUnsignedLongLong(unsigned long long)
    double PyFloat_AS_DOUBLE(PyObject*)
    PyObject* PyFloat_FromDouble(double)
    const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*)
    PyObject* PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)
    char* PyBytes_AS_STRING(PyObject*)
    Py_ssize_t PyBytes_GET_SIZE(PyObject*)
    PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t)
    PyObject* PyTuple_New(Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject*)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    void PyTuple_SET_ITEM(PyObject*, Py_ssize_t, PyObject*)
    bint PyList_CheckExact(PyObject*)
    PyObject* PyList_New(Py_ssize_t)
    Py_ssize_t PyList_GET_SIZE(PyObject*)
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)
    void PyList_SET_ITEM(PyObject*, Py_ssize_t, PyObject*)
    bint PyDict_CheckExact(PyObject*)
    PyObject* PyDict_New()
    Py_ssize_t PyDict_GET_SIZE(PyObject*)
    int PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**)
    int PyDict_SetItem(PyObject*, PyObject*, PyObject*)

cdef enum:
    SHORT_TUPLE = 15  # the longest tuple that has a one-byte header
    INLINE = 8        # how deep containers lie in one another that are written and read inline
    COUNT_MAX = 1024  # how many elements of a container are believed before they are there

cpdef enum:
    LIST_TAG = 64     # the extension type of a list


cdef inline unsigned char* put(
    unsigned char* p, unsigned char* end, PyObject* value
) noexcept:
    """Write a plain value; the byte after it, or NULL: not plain, too deep, or no room before `end`.

    It sets no exception and runs no Python code. After NULL the bytes from `p` on mean nothing.
    """
    return put_value(p, end, value, INLINE)


cdef inline const unsigned char* get(
    const unsigned char* p, const unsigned char* end, PyObject** out
) noexcept:
    """Read a plain value into `out`, a new reference; the byte after it.

    NULL where it is not plain, is large or deep, is cut short or cannot be made: `out` is NULL then
    too, no exception is set, and `marshal.Codec.decode_slow` reads it or says what is wrong.
    """
    return get_value_at(p, end, out, INLINE, COUNT_MAX)


cdef unsigned char* put_items(
    unsigned char* p, unsigned char* end, PyObject* value, int levels
) noexcept
cdef const unsigned char* get_items(
    const unsigned char* p, const unsigned char* end, PyObject** out, int levels, Py_ssize_t most
) noexcept


cdef inline unsigned char* put_value(
    unsigned char* p, unsigned char* end, PyObject* value, int levels
) noexcept:
    """`put` for containers in so many levels."""
    if PyTuple_CheckExact(value) or PyList_CheckExact(value) or PyDict_CheckExact(value):
        return put_items(p, end, value, levels)
    return put_scalar(p, end, value)


cdef inline const unsigned char* get_value_at(
    const unsigned char* p, const unsigned char* end, PyObject** out, int levels, Py_ssize_t most
) noexcept:
    """`get` for containers in so many levels, of up to so many elements."""
    if p < end and 0x80 <= p[0] < 0xE0 and (p[0] < 0xA0 or p[0] >= 0xDC):
        return get_items(p, end, out, levels, most)
    return get_scalar(p, end, out)


cdef inline unsigned char* put_simple(
    unsigned char* p, unsigned char* end, PyObject* value
) noexcept:
    """`put` for a simple value."""
    if not PyTuple_CheckExact(value):
        return put_scalar(p, end, value)
    return put_tuple(p, end, value, 2)


cdef inline const unsigned char* get_simple(
    const unsigned char* p, const unsigned char* end, PyObject** out
) noexcept:
    """`get` for a simple value."""
    if p < end and p[0] & 0xF0 == 0x90:
        return get_tuple(p, end, out, 2)
    return get_scalar(p, end, out)


cdef inline unsigned char* put_count(
    unsigned char* p, unsigned char* end, unsigned char small, unsigned char tag, Py_ssize_t count
) noexcept:
    """The header of an array or a map: in one byte, or behind `tag`."""
    if count <= 15:
        if p >= end:
            return NULL
        p[0] = <unsigned char>(small | count)
        return p + 1
    if count <= 0xFFFF:
        return put_number(p, end, tag, count, 2)
    if count <= 0xFFFFFFFFLL:
        return put_number(p, end, tag + 1, count, 4)
    return NULL


cdef inline unsigned char* put_scalar(
    unsigned char* p, unsigned char* end, PyObject* value
) noexcept:
    if PyLong_CheckExact(value):
        return put_int(p, end, value)
    if PyUnicode_CheckExact(value):
        return put_text(p, end, value)
    if PyFloat_CheckExact(value):
        return put_float(p, end, PyFloat_AS_DOUBLE(value))
    if PyBytes_CheckExact(value):
        return put_bin(p, end, value)
    if p >= end:
        return NULL
    if value == Py_None:
        p[0] = 0xC0
    elif value == Py_False:
        p[0] = 0xC2
    elif value == Py_True:
        p[0] = 0xC3
    else:
        return NULL
    return p + 1


cdef inline unsigned char* put_tuple(
    unsigned char* p, unsigned char* end, PyObject* value, int levels
) noexcept:
    cdef Py_ssize_t size = PyTuple_GET_SIZE(value)
    cdef Py_ssize_t index
    cdef PyObject* item
    if size > SHORT_TUPLE or levels == 0 or p >= end:
        return NULL
    p[0] = <unsigned char>(0x90 | size)
    p += 1
    for index in range(size):
        item = PyTuple_GET_ITEM(value, index)
        if PyTuple_CheckExact(item):
            p = put_tuple(p, end, item, levels - 1)
        else:
            p = put_scalar(p, end, item)
        if p is NULL:
            return NULL
    return p


cdef inline unsigned char* put_int(
    unsigned char* p, unsigned char* end, PyObject* value
) noexcept:
    cdef int overflow = 0
    cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
    cdef uint64_t large
    if overflow:
        if overflow < 0:
            return NULL
        large = PyLong_AsUnsignedLongLong(value)
        if large == <uint64_t>-1 and PyErr_Occurred() is not NULL:
            PyErr_Clear()
            return NULL
        return put_number(p, end, 0xCF, large, 8)
    if -32 <= number < 128:
        if p >= end:
            return NULL
        p[0] = <unsigned char>number
        return p + 1
    if number >= 0:
        if number <= 0xFF:
            return put_number(p, end, 0xCC, number, 1)
        if number <= 0xFFFF:
            return put_number(p, end, 0xCD, number, 2)
        if number <= 0xFFFFFFFFLL:
            return put_number(p, end, 0xCE, number, 4)
        return put_number(p, end, 0xCF, number, 8)
    if number >= -0x80:
        return put_number(p, end, 0xD0, number, 1)
    if number >= -0x8000:
        return put_number(p, end, 0xD1, number, 2)
    if number >= -0x80000000LL:
        return put_number(p, end, 0xD2, number, 4)
    return put_number(p, end, 0xD3, number, 8)


cdef inline unsigned char* put_float(
    unsigned char* p, unsigned char* end, double number
) noexcept:
    cdef uint64_t bits
    memcpy(&bits, &number, 8)
    return put_number(p, end, 0xCB, bits, 8)


cdef inline unsigned char* put_text(
    unsigned char* p, unsigned char* end, PyObject* value
) noexcept:
    cdef Py_ssize_t size
    cdef const char* data = PyUnicode_AsUTF8AndSize(value, &size)
    if data is NULL:  # a lone surrogate: no UTF-8
        PyErr_Clear()
        return NULL
    if size < 32:
        if end - p <= size:
            return NULL
        p[0] = <unsigned char>(0xA0 | size)
        p += 1
    elif size <= 0xFF:
        p = put_number(p, end, 0xD9, size, 1)
    elif size <= 0xFFFF:
        p = put_number(p, end, 0xDA, size, 2)
    else:
        p = put_number(p, end, 0xDB, size, 4)
    return put_data(p, end, data, size)


cdef inline unsigned char* put_bin(
    unsigned char* p, unsigned char* end, PyObject* value
) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
    if size <= 0xFF:
        p = put_number(p, end, 0xC4, size, 1)
    elif size <= 0xFFFF:
        p = put_number(p, end, 0xC5, size, 2)
    else:
        p = put_number(p, end, 0xC6, size, 4)
    return put_data(p, end, PyBytes_AS_STRING(value), size)


cdef inline unsigned char* put_data(
    unsigned char* p, unsigned char* end, const char* data, Py_ssize_t size
) noexcept:
    """What follows a header that may not have fitted. Sizes past 32 bits never fit either."""
    if p is NULL or end - p < size or size > 0xFFFFFFFFLL:
        return NULL
    memcpy(p, data, size)
    return p + size


cdef inline unsigned char* put_number(
    unsigned char* p, unsigned char* end, unsigned char tag, uint64_t number, Py_ssize_t size
) noexcept:
    """A tag, and the lowest `size` bytes of a number."""
    if end - p <= size:
        return NULL
    p[0] = tag
    number = htobe64(number << (64 - 8 * size))
    memcpy(p + 1, &number, size)
    return p + 1 + size


cdef inline const unsigned char* get_scalar(
    const unsigned char* p, const unsigned char* end, PyObject** out
) noexcept:
    cdef unsigned char tag
    cdef Py_ssize_t size
    cdef uint64_t bits
    cdef double number
    out[0] = NULL
    if p >= end:
        return NULL
    tag = p[0]
    p += 1
    if tag < 0x80 or tag >= 0xE0:
        return made(p, out, PyLong_FromLongLong(<int8_t>tag))
    if tag & 0xE0 == 0xA0:
        return get_text(p, end, out, tag & 0x1F)
    size = operand_size(tag)
    if size < 0 or end - p < size:
        return NULL
    bits = load(p, size)
    p += size
    if tag == 0xC0:
        return shared(p, out, Py_None)
    if tag == 0xC2:
        return shared(p, out, Py_False)
    if tag == 0xC3:
        return shared(p, out, Py_True)
    if tag <= 0xC6:
        return get_bin(p, end, out, bits)
    if tag == 0xCB:
        memcpy(&number, &bits, 8)
        return made(p, out, PyFloat_FromDouble(number))
    if tag <= 0xCF:
        return made(p, out, PyLong_FromUnsignedLongLong(bits))
    if tag <= 0xD3:
        return made(p, out, PyLong_FromLongLong(extended(bits, size)))
    return get_text(p, end, out, bits)


cdef inline const unsigned char* get_tuple(
    const unsigned char* p, const unsigned char* end, PyObject** out, int levels
) noexcept:
    cdef Py_ssize_t size = p[0] & 0x0F
    cdef Py_ssize_t index
    cdef PyObject* item
    cdef PyObject* items
    out[0] = NULL
    if levels == 0 or end - p <= size:
        return NULL
    items = PyTuple_New(size)
    if items is NULL:
        PyErr_Clear()
        return NULL
    p += 1
    for index in range(size):
        if p < end and p[0] & 0xF0 == 0x90:
            p = get_tuple(p, end, &item, levels - 1)
        else:
            p = get_scalar(p, end, &item)
        if p is NULL:
            Py_DECREF(items)
            return NULL
        PyTuple_SET_ITEM(items, index, item)
    out[0] = items
    return p


cdef inline const unsigned char* get_text(
    const unsigned char* p, const unsigned char* end, PyObject** out, uint64_t size
) noexcept:
    if <uint64_t>(end - p) < size:
        return NULL
    return made(p + size, out, PyUnicode_DecodeUTF8(<const char*>p, <Py_ssize_t>size, NULL))


cdef inline const unsigned char* get_bin(
    const unsigned char* p, const unsigned char* end, PyObject** out, uint64_t size
) noexcept:
    if <uint64_t>(end - p) < size:
        return NULL
    return made(p + size, out, PyBytes_FromStringAndSize(<const char*>p, <Py_ssize_t>size))


cdef inline const unsigned char* made(
    const unsigned char* p, PyObject** out, PyObject* value
) noexcept:
    """Hand over a new object; where it could not be made, the slow way will say why."""
    out[0] = value
    if value is NULL:
        PyErr_Clear()
        return NULL
    return p


cdef inline const unsigned char* shared(
    const unsigned char* p, PyObject** out, PyObject* value
) noexcept:
    Py_INCREF(value)
    out[0] = value
    return p


cdef inline Py_ssize_t operand_size(unsigned char tag) noexcept nogil:
    """The bytes of the number or length behind `tag`; -1 where `get` leaves it to the codec."""
    if tag == 0xC0 or tag == 0xC2 or tag == 0xC3:
        return 0
    if 0xC4 <= tag <= 0xC6:
        return 1 << (tag - 0xC4)
    if tag == 0xCB:
        return 8
    if 0xCC <= tag <= 0xCF:
        return 1 << (tag - 0xCC)
    if 0xD0 <= tag <= 0xD3:
        return 1 << (tag - 0xD0)
    if 0xD9 <= tag <= 0xDB:
        return 1 << (tag - 0xD9)
    return -1


cdef inline uint64_t load(const unsigned char* p, Py_ssize_t size) noexcept nogil:
    """A big-endian number of 0, 1, 2, 4 or 8 bytes."""
    cdef uint16_t half
    cdef uint32_t word
    cdef uint64_t large
    if size == 1:
        return p[0]
    if size == 2:
        memcpy(&half, p, 2)
        return be16toh(half)
    if size == 4:
        memcpy(&word, p, 4)
        return be32toh(word)
    if size == 8:
        memcpy(&large, p, 8)
        return be64toh(large)
    return 0


cdef inline int64_t extended(uint64_t bits, Py_ssize_t size) noexcept nogil:
    """The lowest `size` bytes of `bits`, read as a signed number."""
    if size == 1:
        return <int8_t>bits
    if size == 2:
        return <int16_t>bits
    if size == 4:
        return <int32_t>bits
    return <int64_t>bits


cdef bytes encode_plain(object value, int depth)
