"""Arguments, results and state as bytes: msgpack, with extension types for what Python passes.

Most values on the hot path are plain: `put` and `get` (plain.pxd) write and read those inline,
byte for byte as the msgpack library does. The `Codec` does the rest with the library, and gives the
same bytes for what is plain, so a receiver need not know which wrote it.

A msgpack array is a *tuple*, since arguments are mostly scalars and short tuples of them: a
tuple costs one byte and no call. Whatever else is made of elements is a tagged array (see
`extension_types`), a list too: three bytes. So each arrives as what it was.

Encoding has two steps. `flatten` goes through the value and gives it back made of msgpack's own
types alone, where it had others; it knows the depth and the path, so an error names the place,
and a value that contains itself ends at the depth limit. The library packs what comes out.
Decoding has two as well: `skip` checks all lengths, counts, depths and extension codes against
the bytes that are there before anything is made; then the library builds the value.

Text must be valid Unicode: a lone surrogate is refused by both ways. Floats keep their bits.
A dict keeps its order; a set travels in the order of its elements' bytes.
"""

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF as incref
from cpython.tuple cimport PyTuple_New as new_tuple, PyTuple_SET_ITEM as fill_tuple
from libc.stdint cimport uint64_t

import sys

from msgpack import ExtType, Packer, unpackb

from orcalike.runtime import extension_codes, extension_types
from orcalike.runtime.errors import NotSerializable, Unreadable
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.wording import repr_of, text_of

from orcalike.runtime.plain cimport (
    INLINE,
    Py_DECREF,
    PyErr_Clear,
    PyLong_AsLongLongAndOverflow,
    PyUnicode_AsUTF8AndSize,
    encode_plain,
    get,
    get_value_at,
    load,
    operand_size,
    put,
)
from orcalike.transport.wire.read_buffer cimport ReadBuffer

cdef int LAST_LEAF = extension_codes.LAST_LEAF
cdef int FIRST_TAG = extension_codes.FIRST_TAG
cdef int LAST_TAG = extension_codes.LAST_TAG
cdef int REFERENCE = extension_codes.Code.REFERENCE
cdef int LIST = extension_codes.Code.LIST
cdef int SET = extension_codes.Code.SET
cdef int FROZENSET = extension_codes.Code.FROZENSET
cdef object BIG_INT = extension_codes.Code.BIG_INT
cdef object take_apart = extension_types.take_apart
cdef object revive = extension_types.revive
cdef object rebuild = extension_types.rebuild
cdef object place = extension_types.place

cdef enum:
    FIXEXT = 0xD4   # msgpack's extension type with a payload of one byte; the next one has two
    PATH_MAX = 8    # the steps of a path that an error shows
    NAME_MAX = 40   # the characters of a key in it


cdef enum Fault:
    TRUNCATED
    TOO_DEEP
    UNKNOWN

cdef tuple FAULTS = (
    "is cut short, or longer than it may be",
    "is nested too deep",
    "has a type that is not known",
)


class Misfit(Exception):
    """A value that cannot travel, and the steps to it, the innermost first; never leaves here."""

    def __init__(self, reason):
        self.reason = reason
        self.steps = []


@cython.final
cdef class Tag:
    """The first element of a tagged array while it is decoded; no program ever sees one."""

    cdef int code


cdef dict packed_tags = {}   # by code: as the library packs it
cdef dict tags = {}          # by code: as it is read


cdef int make_tags() except -1:
    cdef Tag tag
    for code in range(FIRST_TAG, LAST_TAG + 1):
        tag = Tag.__new__(Tag)
        tag.code = code
        tags[code] = tag
        packed_tags[code] = ExtType(code, b"")
    return 0


make_tags()


@cython.final
cdef class Codec:
    """Encodes and decodes values; one for each group, since references to objects are its own.

    `reference_of(value)` gives the id of a shared object and None for any other value;
    `object_of(id)` gives the object. Any thread may use it.
    """

    def __init__(self, reference_of, object_of, *, Py_ssize_t max_bytes=1 << 24, int max_depth=32):
        if max_depth < INLINE:
            raise ValueError(f"max_depth must be at least {<int>INLINE}: so deep is always read")
        self.reference_of = reference_of
        self.object_of = object_of
        self.max_bytes = max_bytes
        self.max_depth = max_depth

    def encode(self, values, str what):
        """The encodings of all `values`, one after the other: the arguments of `what`.

        Raises NotSerializable, with the path to the value that cannot travel.
        """
        return self.encode_slow(tuple(values), what)

    def encode_value(self, value, str what):
        """The encoding of one value, which errors call `what`. Raises NotSerializable."""
        return within_limit(self, encode_named(self, value, what, False, self.max_depth), what)

    def encode_canonical(self, value, str what="the state", int depth=0):
        """As `encode_value`, of any size and with dicts sorted by the bytes of their keys.

        `depth`: the levels that it may have; 0: as many as what travels.

        Replicas of one state have the same bytes, whatever the order in which their dicts and
        sets were filled; so digests of them can be compared (I18).
        """
        return encode_named(self, value, what, True, depth or self.max_depth)

    def decode(self, data):
        """All values in `data`, which must hold whole ones and nothing else.

        Raises ProtocolError for whatever is malformed or over a limit, for each process alike.
        What is this process's own matter is a fault of it: Unreadable, with the number of the
        value, where it lacks a class, a module or a zone; MemoryError; RecursionError. What
        `object_of` raises of orcalike's own passes through.
        """
        cdef ReadBuffer read = ReadBuffer(data)
        return self.decode_slow(read.start, read.size)

    cdef bytes encode_slow(self, tuple values, str what, int head=0):
        """`encode`, for the hot path where `put` gave up on one of `values`; its arguments come behind so many."""
        cdef list parts = []
        cdef bytes data
        for number, value in enumerate(values, 1 - head):
            data = encode_plain(value, self.max_depth)
            if data is None:
                data = encode_reference(self, value)
            if data is None:            # only then its name is made
                data = encode_flat(self, value, f"argument {number} of {what}", False, self.max_depth)
            parts.append(data)
        data = b"".join(parts)
        return data if len(data) <= self.max_bytes else within_limit(self, data, f"the arguments of {what}")

    cdef unsigned char* put_known(self, unsigned char* p, unsigned char* stop, tuple values) except? NULL:
        """Write values that are plain, or shared objects, behind each other; where they end. NULL if there is another one, or no room."""
        cdef unsigned char* after
        for value in values:
            after = put(p, stop, <PyObject*>value)
            if after is NULL:
                reference = self.reference_of(value)
                after = NULL if reference is None else put_reference(p, stop, reference)
            if after is NULL:
                return NULL
            p = after
        return p

    cdef list decode_slow(self, const unsigned char* data, Py_ssize_t size):
        """`decode`, for the hot path where `get` gave up on one of the values in `data`."""
        cdef const unsigned char* p = data
        cdef const unsigned char* end = data + size
        cdef const unsigned char* after
        cdef PyObject* simple
        cdef Fault fault = TRUNCATED
        cdef list values = []
        if size > self.max_bytes:
            raise ProtocolError(f"{size} bytes of values arrived; at most {self.max_bytes} may")
        while p < end:
            after = get(p, end, &simple)
            if after is not NULL:
                values.append(<object>simple)
                Py_DECREF(simple)
            else:
                after = skip(p, end, self.max_depth, &fault)
                if after is NULL:
                    raise ProtocolError(
                        f"the value at byte {p - data} of {size} {FAULTS[<int>fault]}"
                    )
                # All counts are true now: a plain value is made inline, whatever its size.
                if get_value_at(p, after, &simple, self.max_depth, after - p) is after:
                    values.append(<object>simple)
                    Py_DECREF(simple)
                    p = after
                    continue
                try:
                    values.append(unpack(self, p, after - p))
                except Unreadable as error:
                    error.argument, error.values = len(values) + 1, tuple(values)
                    raise
            p = after
        return values

    def _array(self, tuple items):
        """What an array stands for; the library calls it, the innermost array first."""
        cdef int code
        if not items or type(items[0]) is not Tag:
            return items
        code = (<Tag>items[0]).code
        if code == LIST:
            elements = list(items)
            del elements[0]
            return elements
        return rebuild(code, items[1:])

    def _extension(self, int code, bytes payload):
        """What an extension type stands for; the library calls it."""
        if code >= FIRST_TAG:
            return tags[code]
        if code == REFERENCE:
            return self.object_of(int.from_bytes(payload, "big"))
        return revive(code, payload)


cdef unsigned char* put_reference(unsigned char* p, unsigned char* stop, uint64_t number) noexcept:
    """Write what stands for a shared object, as the library does; NULL if it takes more than two bytes, or there is no room."""
    cdef int size = 1 if number <= 0xFF else 2
    if number > 0xFFFF or stop - p < size + 2:
        return NULL
    p[0] = <unsigned char>(FIXEXT + size - 1)
    p[1] = <unsigned char>REFERENCE
    p[2] = <unsigned char>(number >> 8)
    p[1 + size] = <unsigned char>number
    return p + size + 2


cdef bytes encode_reference(Codec codec, object value):
    """The same as bytes; None for what is no shared object, too."""
    cdef unsigned char data[4]
    cdef unsigned char* stop
    reference = codec.reference_of(value)
    stop = NULL if reference is None else put_reference(data, data + 4, reference)
    return None if stop is NULL else data[:stop - data]


cdef inline bint is_short_reference(const unsigned char* p) noexcept:
    """Whether a value that is there, whole, is what `put_reference` writes."""
    return FIXEXT <= p[0] <= FIXEXT + 1 and p[1] == REFERENCE


cdef bytes encode_named(Codec codec, object value, str what, bint canonical, int depth):
    cdef bytes data = None if canonical else encode_plain(value, codec.max_depth)
    return encode_flat(codec, value, what, canonical, depth) if data is None else data


cdef bytes encode_flat(Codec codec, object value, str what, bint canonical, int depth):
    """The encoding of any value that can travel; errors call it `what`."""
    try:
        return pack(codec, flatten(codec, value, depth, canonical))
    except Misfit as misfit:
        raise NotSerializable(f"{what}{path(misfit.steps)}: {misfit.reason}") from None


cdef bytes within_limit(Codec codec, bytes data, str what):
    if len(data) > codec.max_bytes:
        raise NotSerializable(
            f"{what}: {len(data)} bytes, and at most {codec.max_bytes} travel at once; "
            "pass it in parts"
        )
    return data


cdef bytes pack(Codec codec, object flat):
    # Taken and given back, so that no two calls share one, and none is used after a failure.
    cdef object packer = codec.packer
    cdef bytes data
    codec.packer = None
    if packer is None:
        packer = Packer(buf_size=4096)
    try:
        data = packer.pack(flat)
    except (ValueError, OverflowError) as error:
        raise Misfit(f"msgpack cannot hold it: {error}") from None
    codec.packer = packer
    return data


cdef object flatten(Codec codec, object value, int room, bint canonical):
    """`value`, made of msgpack's own types alone. `room` is how much deeper it may go."""
    cdef type kind = type(value)
    if value is None or kind is bool or kind is float or kind is bytes:
        return value
    if kind is str:
        return valid_text(value)
    if kind is int:
        return value if fits(value) else ExtType(BIG_INT, extension_types.big_int(value))
    if kind is tuple:
        return flatten_items(codec, value, None, None, room, canonical)
    if kind is list:
        return flatten_items(codec, tuple(value), packed_tags[LIST], None, room, canonical)
    if kind is dict:
        return flatten_dict(codec, value, room, canonical)
    if kind is set:
        return flatten_set(codec, value, packed_tags[SET], room, canonical)
    if kind is frozenset:
        return flatten_set(codec, value, packed_tags[FROZENSET], room, canonical)
    return flatten_other(codec, value, room, canonical)


cdef tuple flatten_items(
    Codec codec, tuple items, object tag, object owner, int room, bint canonical
):
    """The items as a tuple behind their tag, if any. `owner` is what they were taken from."""
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t shift = tag is not None
    cdef tuple flat = new_tuple(len(items) + shift)
    cdef object item
    require(room)
    if shift:
        incref(tag)
        fill_tuple(flat, 0, tag)
    try:
        for index in range(len(items)):
            item = flatten(codec, items[index], room - 1, canonical)
            incref(item)
            fill_tuple(flat, index + shift, item)
    except Misfit as misfit:
        misfit.steps.append(f"[{index}]" if owner is None else place(owner, index))
        raise
    return flat


cdef dict flatten_dict(Codec codec, dict value, int room, bint canonical):
    cdef dict flat = {}
    cdef object key = None
    cdef object flat_key = None
    require(room)
    try:
        for key, item in value.items():
            flat_key = None
            flat_key = flatten(codec, key, room - 1, canonical)
            flat[flat_key] = flatten(codec, item, room - 1, canonical)
    except Misfit as misfit:
        in_key = flat_key is None and key is not None
        misfit.steps.append(f" key {shown(key)}" if in_key else f"[{shown(key)}]")
        raise
    if len(flat) != len(value):
        raise Misfit("two keys of this dict are the same once they have travelled")
    if canonical:
        return {key: flat[key] for key in sorted_by_bytes(codec, list(flat))}
    return flat


cdef tuple flatten_set(Codec codec, object value, object tag, int room, bint canonical):
    cdef list flat = []
    cdef object item = None
    require(room)
    try:
        for item in value:
            flat.append(flatten(codec, item, room - 1, canonical))
    except Misfit as misfit:
        misfit.steps.append(f" element {shown(item)}")
        raise
    return (tag, *sorted_by_bytes(codec, flat))


cdef list sorted_by_bytes(Codec codec, list flat):
    # The position keeps two items with the same bytes from being compared themselves.
    cdef list keyed = [(pack(codec, item), index) for index, item in enumerate(flat)]
    keyed.sort()
    return [flat[index] for _, index in keyed]


cdef object flatten_other(Codec codec, object value, int room, bint canonical):
    """A reference to a shared object, or the form of a value that msgpack does not know."""
    try:
        reference = codec.reference_of(value)
        if reference is not None:
            size = (reference.bit_length() + 7) // 8
            return ExtType(REFERENCE, reference.to_bytes(max(1, size), "big"))
        code, content = take_apart(value)
    except NotSerializable as error:
        raise Misfit(str(error)) from None
    if type(content) is bytes:
        return ExtType(code, content)
    return flatten_items(codec, content, packed_tags[code], value, room, canonical)


cdef object unpack(Codec codec, const unsigned char* data, Py_ssize_t size):
    """The value in `data`, whose structure `skip` has found right."""
    try:
        if is_short_reference(data):
            return codec.object_of(load(data + 2, size - 2))
        # All max_*_len are the size of the data where none is given.
        return unpackb(
            PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ),
            use_list=False,
            list_hook=codec._array,
            ext_hook=codec._extension,
            strict_map_key=False,
        )
    except (OrcalikeError, Unreadable, MemoryError, RecursionError):
        raise
    except Exception as error:
        if is_the_programs(error):
            raise Unreadable(f"it could not be made: {repr_of(error)}") from error
        raise ProtocolError(
            f"a value arrived that cannot be read: {type(error).__name__}: {text_of(error)}"
        ) from error


cdef bint is_the_programs(object error):
    """Whether code of the program raised an exception: a registered class's `__hash__`, say."""
    traceback = error.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return module not in sys.stdlib_module_names and module not in ("orcalike", "msgpack", "numpy")


cdef const unsigned char* skip(
    const unsigned char* p, const unsigned char* end, int room, Fault* fault
) noexcept nogil:
    """The byte after the value at `p`, or NULL, and what is wrong with the value.

    It goes by the bytes that are there: no length or count is believed that is larger.
    """
    cdef unsigned char tag
    cdef Py_ssize_t width = 0
    cdef uint64_t size
    if p >= end:
        fault[0] = TRUNCATED
        return NULL
    tag = p[0]
    p += 1
    if tag < 0x80 or tag >= 0xE0:
        return p
    if tag < 0x90:
        return skip_items(p, end, 2 * (tag & 0x0F), room, fault)
    if tag < 0xA0:
        return skip_array(p, end, tag & 0x0F, room, fault)
    if tag < 0xC0:
        return skip_bytes(p, end, tag & 0x1F, fault)
    if tag == 0xC1:
        fault[0] = UNKNOWN
        return NULL
    if tag == 0xCA:
        return skip_bytes(p, end, 4, fault)
    if 0xD4 <= tag <= 0xD8:
        return skip_extension(p, end, 1 << (tag - 0xD4), fault)
    if 0xC7 <= tag <= 0xC9:
        width = 1 << (tag - 0xC7)
    elif tag >= 0xDC:
        width = 4 if tag & 1 else 2
    else:
        width = operand_size(tag)
    if end - p < width:
        fault[0] = TRUNCATED
        return NULL
    size = load(p, width)
    p += width
    if 0xC7 <= tag <= 0xC9:
        return skip_extension(p, end, size, fault)
    if tag >= 0xDE:
        return skip_items(p, end, 2 * size, room, fault)
    if tag >= 0xDC:
        return skip_array(p, end, size, room, fault)
    if 0xC4 <= tag <= 0xC6 or tag >= 0xD9:
        return skip_bytes(p, end, size, fault)
    return p


cdef const unsigned char* skip_array(
    const unsigned char* p, const unsigned char* end, uint64_t count, int room, Fault* fault
) noexcept nogil:
    # A tag is right here alone, as an array's first element.
    if count > 0 and end - p >= 3 and p[0] == 0xC7 and p[1] == 0:
        if FIRST_TAG <= p[2] <= LAST_TAG:
            p += 3
            count -= 1
    return skip_items(p, end, count, room, fault)


cdef const unsigned char* skip_items(
    const unsigned char* p, const unsigned char* end, uint64_t count, int room, Fault* fault
) noexcept nogil:
    if room == 0:
        fault[0] = TOO_DEEP
        return NULL
    if count > <uint64_t>(end - p):
        fault[0] = TRUNCATED
        return NULL
    while count > 0 and p is not NULL:
        p = skip(p, end, room - 1, fault)
        count -= 1
    return p


cdef const unsigned char* skip_extension(
    const unsigned char* p, const unsigned char* end, uint64_t size, Fault* fault
) noexcept nogil:
    if p < end and not 1 <= p[0] <= LAST_LEAF:
        fault[0] = UNKNOWN
        return NULL
    return skip_bytes(p, end, size + 1, fault)


cdef const unsigned char* skip_bytes(
    const unsigned char* p, const unsigned char* end, uint64_t size, Fault* fault
) noexcept nogil:
    if size > <uint64_t>(end - p):
        fault[0] = TRUNCATED
        return NULL
    return p + size


cdef int require(int room) except -1:
    if room == 0:
        raise Misfit("nested too deep, or it contains itself; flatten it, or pass parts of it")
    return 0


cdef bint fits(object value):
    """Whether an int is one of msgpack's."""
    cdef int overflow = 0
    PyLong_AsLongLongAndOverflow(<PyObject*>value, &overflow)
    return overflow == 0 or (overflow > 0 and value < 1 << 64)


cdef object valid_text(str value):
    cdef Py_ssize_t size
    if PyUnicode_AsUTF8AndSize(<PyObject*>value, &size) is NULL:
        PyErr_Clear()
        raise Misfit(
            "text with a lone surrogate cannot travel; pass bytes (os.fsencode, for a file's name)"
        )
    return value


cdef str path(list steps):
    """The steps from the outermost on; it begins with a comma where there are any."""
    text = "".join(reversed(steps[max(0, len(steps) - PATH_MAX):]))
    if len(steps) > PATH_MAX:
        text += "..."
    return f", {text.lstrip()}" if text else ""


cdef str shown(object key):
    """A key as a path shows it: no code of the program's runs for it."""
    cdef type kind = type(key)
    if kind is str:
        text = ascii(key)
        if '"' not in text:
            text = f'"{text[1:len(text) - 1]}"'
    elif kind in (int, float, bool, bytes) or key is None:
        text = repr_of(key)             # a long int has no digits that may be shown
    else:
        return f"<{kind.__name__}>"
    return text if len(text) <= NAME_MAX else text[:NAME_MAX] + "..."
