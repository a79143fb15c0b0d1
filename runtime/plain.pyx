"""Plain values in msgpack's own bytes: what `put` and `get` (plain.pxd) do not do inline.

Tuples, lists and dicts of plain values, and the encoding of a plain value of any size. None of it
sets an exception or runs code of the program's; where it gives up, `marshal` goes on.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject


cdef unsigned char* put_items(
    unsigned char* p, unsigned char* end, PyObject* value, int levels
) noexcept:
    """Write a tuple, a list or a dict of plain values; see `put`."""
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t size
    cdef PyObject* key
    cdef PyObject* item
    if levels == 0:
        return NULL
    if PyTuple_CheckExact(value):
        size = PyTuple_GET_SIZE(value)
        p = put_count(p, end, 0x90, 0xDC, size)
        while p is not NULL and index < size:
            p = put_value(p, end, PyTuple_GET_ITEM(value, index), levels - 1)
            index += 1
        return p
    if PyList_CheckExact(value):
        size = PyList_GET_SIZE(value)
        p = put_count(p, end, 0x90, 0xDC, size + 1)
        if p is NULL or end - p < 3:
            return NULL
        p[0], p[1], p[2] = 0xC7, 0, LIST_TAG
        p += 3
        while p is not NULL and index < size:
            p = put_value(p, end, PyList_GET_ITEM(value, index), levels - 1)
            index += 1
        return p
    p = put_count(p, end, 0x80, 0xDE, PyDict_GET_SIZE(value))
    while p is not NULL and PyDict_Next(value, &index, &key, &item):
        p = put_value(p, end, key, levels - 1)
        if p is not NULL:
            p = put_value(p, end, item, levels - 1)
    return p


cdef const unsigned char* get_items(
    const unsigned char* p, const unsigned char* end, PyObject** out, int levels, Py_ssize_t most
) noexcept:
    """Read an array or a map; see `get`."""
    cdef unsigned char tag = p[0]
    cdef Py_ssize_t width = 0
    cdef Py_ssize_t count = tag & 0x0F
    out[0] = NULL
    p += 1
    if tag >= 0xDC:
        width = 4 if tag & 1 else 2
        if end - p < width:
            return NULL
        count = <Py_ssize_t>load(p, width)
        p += width
    if levels == 0 or count > most or count > end - p:
        return NULL
    if tag < 0x90 or tag >= 0xDE:
        return get_dict(p, end, out, count, levels, most)
    if count > 0 and end - p >= 3 and p[0] == 0xC7 and p[1] == 0 and p[2] == LIST_TAG:
        return get_list(p + 3, end, out, count - 1, levels, most)
    return get_long_tuple(p, end, out, count, levels, most)


cdef const unsigned char* get_list(
    const unsigned char* p, const unsigned char* end, PyObject** out, Py_ssize_t count, int levels,
    Py_ssize_t most
) noexcept:
    cdef Py_ssize_t index
    cdef PyObject* item
    cdef PyObject* items = PyList_New(count)
    if items is NULL:
        PyErr_Clear()
        return NULL
    for index in range(count):
        p = get_value_at(p, end, &item, levels - 1, most)
        if p is NULL:
            Py_DECREF(items)
            return NULL
        PyList_SET_ITEM(items, index, item)
    out[0] = items
    return p


cdef const unsigned char* get_long_tuple(
    const unsigned char* p, const unsigned char* end, PyObject** out, Py_ssize_t count, int levels,
    Py_ssize_t most
) noexcept:
    cdef Py_ssize_t index
    cdef PyObject* item
    cdef PyObject* items = PyTuple_New(count)
    if items is NULL:
        PyErr_Clear()
        return NULL
    for index in range(count):
        p = get_value_at(p, end, &item, levels - 1, most)
        if p is NULL:
            Py_DECREF(items)
            return NULL
        PyTuple_SET_ITEM(items, index, item)
    out[0] = items
    return p


cdef const unsigned char* get_dict(
    const unsigned char* p, const unsigned char* end, PyObject** out, Py_ssize_t count, int levels,
    Py_ssize_t most
) noexcept:
    cdef Py_ssize_t index
    cdef PyObject* key
    cdef PyObject* item
    cdef PyObject* items = PyDict_New()
    cdef int failed
    if items is NULL:
        PyErr_Clear()
        return NULL
    for index in range(count):
        p = get_value_at(p, end, &key, levels - 1, most)
        if p is not NULL:
            p = get_value_at(p, end, &item, levels - 1, most)
            if p is NULL:
                Py_DECREF(key)
        if p is NULL:
            Py_DECREF(items)
            return NULL
        failed = PyDict_SetItem(items, key, item)   # plain keys: no code of the program's runs
        Py_DECREF(key)
        Py_DECREF(item)
        if failed:
            PyErr_Clear()
            Py_DECREF(items)
            return NULL
    out[0] = items
    return p


cdef Py_ssize_t measure(PyObject* value, int levels) noexcept:
    """How many bytes `put` writes for a value; -1 where it is not plain."""
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t size, total, part
    cdef PyObject* key
    cdef PyObject* item
    if PyTuple_CheckExact(value):
        size = PyTuple_GET_SIZE(value)
        total = header_size(size)
    elif PyList_CheckExact(value):
        size = PyList_GET_SIZE(value)
        total = header_size(size + 1) + 3
    elif PyDict_CheckExact(value):
        size = PyDict_GET_SIZE(value)
        total = header_size(size)
        if levels == 0 or total < 0:
            return -1
        while PyDict_Next(value, &index, &key, &item):
            part = measure(key, levels - 1)
            if part < 0:
                return -1
            total += part
            part = measure(item, levels - 1)
            if part < 0:
                return -1
            total += part
        return total
    else:
        return scalar_size(value)
    if levels == 0 or total < 0:
        return -1
    for index in range(size):
        item = (PyTuple_GET_ITEM(value, index) if PyTuple_CheckExact(value)
                else PyList_GET_ITEM(value, index))
        part = measure(item, levels - 1)
        if part < 0:
            return -1
        total += part
    return total


cdef Py_ssize_t header_size(Py_ssize_t count) noexcept:
    """The bytes of an array's or a map's header; -1 where it can have none."""
    if count <= 15:
        return 1
    if count <= 0xFFFF:
        return 3
    return 5 if count <= 0xFFFFFFFFLL else -1000000


cdef Py_ssize_t scalar_size(PyObject* value) noexcept:
    """The same as `measure`, for what is no container."""
    cdef unsigned char data[16]
    cdef unsigned char* after
    cdef Py_ssize_t size
    if PyUnicode_CheckExact(value):
        if PyUnicode_AsUTF8AndSize(value, &size) is NULL:
            PyErr_Clear()
            return -1
        if size > 0xFFFFFFFFLL:
            return -1
        return size + (1 if size < 32 else 2 if size <= 0xFF else 3 if size <= 0xFFFF else 5)
    if PyBytes_CheckExact(value):
        size = PyBytes_GET_SIZE(value)
        if size > 0xFFFFFFFFLL:
            return -1
        return size + (2 if size <= 0xFF else 3 if size <= 0xFFFF else 5)
    after = put_scalar(data, data + 16, value)
    return -1 if after is NULL else after - data


cdef bytes encode_plain(object value, int depth):
    """The encoding of a plain value of any size and so many levels; None if it is not plain."""
    cdef Py_ssize_t size = measure(<PyObject*>value, depth)
    cdef PyObject* made_bytes
    cdef unsigned char* start
    cdef object data
    if size < 0:
        return None
    made_bytes = PyBytes_FromStringAndSize(NULL, size)
    if made_bytes is NULL:
        raise MemoryError
    data = <object>made_bytes
    Py_DECREF(made_bytes)
    start = <unsigned char*>PyBytes_AS_STRING(made_bytes)
    if put_value(start, start + size, <PyObject*>value, depth) is not start + size:
        return None                     # another thread has changed it meanwhile
    return <bytes>data


def put_bytes(value, Py_ssize_t room=4096):
    """What `put` writes into `room` bytes, None if it gives up; for tests of the hot path."""
    cdef unsigned char* data = <unsigned char*>PyMem_Malloc(room + 1)
    cdef unsigned char* after
    if data is NULL:
        raise MemoryError
    try:
        after = put(data, data + room, <PyObject*>value)
        return None if after is NULL else data[:after - data]
    finally:
        PyMem_Free(data)


def get_value(bytes data):
    """The simple value that `get` reads from `data`; for tests of the hot path.

    Raises ValueError if `get` gives up, or leaves bytes over.
    """
    cdef const unsigned char* p = data
    cdef PyObject* out
    cdef const unsigned char* after = get(p, p + len(data), &out)
    if after is NULL:
        raise ValueError("not a simple value")
    value = <object>out
    Py_DECREF(out)
    if after != p + len(data):
        raise ValueError("bytes left over")
    return value
