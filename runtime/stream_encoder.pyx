"""A value of any size as a stream: encoded piece by piece, in bounded extra memory.

The bytes are those of `marshal`, with its depth limit, and no limit on the whole. What one piece
needs is made for that piece: a long text, byte string or array is cut where it lies, and no
container is flattened first. A value must not change while its encoder is in use.

A state is more than its values: two attributes that are one list are one list at a joiner, too. So in a
stream of a state a value to which more refers than where it lies is noted (NOTED stands before it), and
where it comes again its number stands (AGAIN), by the order in which such values are complete. To what is
in one place alone nothing more refers: it costs neither bytes nor memory.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from orcalike.runtime import extension_codes, extension_types
from orcalike.runtime.errors import NotSerializable
from orcalike.runtime.marshal import Misfit
from orcalike.transport.wording import text_of

from orcalike.runtime.marshal cimport Codec, fits, path, require, shown
from orcalike.runtime.plain cimport PyUnicode_AsUTF8AndSize, put_number, put_simple
from orcalike.transport.wire.read_buffer cimport ReadBuffer

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)

cdef int NOTED = extension_codes.NOTED
cdef int AGAIN = extension_codes.AGAIN
cdef int REFERENCE = extension_codes.Code.REFERENCE
cdef int LIST_TAG = extension_codes.Code.LIST
cdef int SET_TAG = extension_codes.Code.SET
cdef int FROZENSET_TAG = extension_codes.Code.FROZENSET
cdef int BIG_INT = extension_codes.Code.BIG_INT
cdef int BYTEARRAY = extension_codes.Code.BYTEARRAY
cdef int NUMPY_ARRAY = extension_codes.Code.NUMPY_ARRAY
cdef object take_apart = extension_types.take_apart
cdef object place = extension_types.place
cdef object parts_of_array = extension_types.parts_of_array

cdef enum:
    HEADROOM = 32           # what a header of any kind fits into
    LONG = 16384            # characters of a text that is encoded in parts

cdef uint64_t LENGTH_MAX = 0xFFFFFFFFu


cdef enum Kind:
    TUPLE
    LIST
    SET
    DICT


cdef class EncoderFrame:
    """A container that is under way."""

    cdef Kind kind
    cdef uint64_t left      # elements that are still to come
    cdef uint64_t index     # of the element that is under way
    cdef object items       # an iterator
    cdef object key         # of a dict: its key, while the value is under way
    cdef bint has_key       # the key is done
    cdef bint pending       # the value is not begun
    cdef object owner       # of a dict: the value; else what the elements were taken from, or None
    cdef object noted       # the container, where it may come again; else None

    cdef str step(self):
        """The step of a path that leads to the element under way."""
        if self.kind == DICT:
            return f"[{shown(self.key)}]" if self.has_key else f" key {shown(self.key)}"
        if self.kind == SET:
            return f" element {shown(self.key)}"
        return f"[{self.index}]" if self.owner is None else place(self.owner, self.index)


cdef class Encoder:
    """The encoding of one value in pieces of up to `size` bytes; errors call it `what`."""

    cdef Codec codec
    cdef str what
    cdef list frames
    cdef unsigned char* data
    cdef Py_ssize_t used
    cdef Py_ssize_t size
    cdef object value       # what is to be encoded, until it is begun
    cdef bint begun
    cdef dict numbers       # of the values that may come again, by their addresses; None: such come as others do
    cdef list kept          # these values: their addresses stay theirs
    cdef object noted       # such a value that is about to be written
    # A payload that is on its way: what is left of this part, and further parts.
    cdef object part
    cdef const unsigned char* rest
    cdef Py_ssize_t left
    cdef object parts

    def __init__(self, Codec codec not None, value, str what not None, Py_ssize_t size, *, bint is_state=False):
        if size < 2 * HEADROOM:
            raise ValueError("a piece has 64 bytes at the least")
        self.codec = codec
        self.what = what
        self.value = value
        self.size = size
        self.frames = []
        self.numbers, self.kept = ({}, []) if is_state else (None, None)
        PyMem_Free(self.data)
        self.data = <unsigned char*>PyMem_Malloc(size)
        if self.data is NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.data)

    def next_piece(self):
        """The next bytes, None at the end. Raises NotSerializable, with the path to the value."""
        try:
            while self.used + HEADROOM <= self.size and self.advance():
                pass
        except Misfit as misfit:
            self.fail(misfit.reason)
        except NotSerializable as error:
            self.fail(str(error))
        if self.used == 0:
            return None
        piece = self.data[:self.used]
        self.used = 0
        return piece

    cdef int fail(self, str reason) except -1:
        steps = [(<EncoderFrame>frame).step() for frame in reversed(self.frames)]
        raise NotSerializable(f"{self.what}{path(steps)}: {reason}") from None

    cdef bint advance(self) except -1:
        """Encode a bit more; whether there was any."""
        cdef Py_ssize_t count
        if self.left:
            count = min(self.left, self.size - self.used)
            memcpy(self.data + self.used, self.rest, count)
            self.used += count
            self.rest += count
            self.left -= count
            return True
        if self.parts is not None:
            self.next_part()
            return True
        if not self.begun:
            self.begun = True
            value, self.value = self.value, None
            self.write(value)
            return True
        return self.next_element()

    cdef bint next_element(self) except -1:
        cdef EncoderFrame frame
        if not self.frames:
            return False
        frame = self.frames[len(self.frames) - 1]
        if frame.pending and frame.has_key:
            value, frame.owner = frame.owner, None
            frame.pending = False
            self.write(value)           # which may put another frame on top
            if self.frames[len(self.frames) - 1] is frame:
                frame.has_key = False
            return True
        try:
            item = next(frame.items, frame)
        except RuntimeError as error:
            raise Misfit(f"{text_of(error)} while it was encoded") from None
        if item is frame:
            if frame.left:
                raise Misfit("it changed while it was encoded")
            self.frames.pop()
            if frame.noted is not None:
                self.number(frame.noted)
            self.close_value()
            return True
        if frame.left == 0:
            raise Misfit("it changed while it was encoded")
        frame.left -= 1
        if frame.kind == DICT:
            frame.key, frame.owner = item
            frame.pending = True
            self.write(frame.key)
            if self.frames[len(self.frames) - 1] is frame:
                frame.has_key = True
        else:
            if frame.kind == SET:
                frame.key = item
            self.write(item)
            if self.frames[len(self.frames) - 1] is frame:
                frame.index += 1
        return True

    cdef int close_value(self) except -1:
        """A container is complete: so is the element that it was."""
        cdef EncoderFrame frame
        if not self.frames:
            return 0
        frame = self.frames[len(self.frames) - 1]
        if frame.kind == DICT:
            frame.has_key = frame.pending   # it was the key, or else the value
        else:
            frame.index += 1
        return 0

    cdef int write(self, object value) except -1:
        """Begin with a value; a small simple one is done at once."""
        cdef type kind = type(value)
        cdef unsigned char* after
        if not (kind is str and len(<str>value) > LONG or kind is tuple and has_long(<tuple>value)):
            after = put_simple(self.data + self.used, self.data + self.size, <PyObject*>value)
            if after is not NULL:
                self.used = after - self.data
                return 0
        if kind is str:
            return self.write_text(value)
        if kind is bytes:
            return self.write_payload(0xC4, 0, len(<bytes>value), value, None)
        if kind is int:
            if fits(value):
                return self.write_small(value)
            payload = extension_types.big_int(value)
            return self.write_payload(0xC7, BIG_INT, len(payload), payload, None)
        if value is None or kind is bool or kind is float:
            return self.write_small(value)
        if self.numbers is not None and self.frames and self.lies_elsewhere(value) and self.comes_again(value):
            return 0
        if kind is tuple:
            return self.push(TUPLE, 0, len(<tuple>value), iter(value), None)
        if kind is list:
            return self.push(LIST, LIST_TAG, len(<list>value), iter(value), None)
        if kind is dict:
            return self.push(DICT, 0, len(<dict>value), iter((<dict>value).items()), None)
        if kind is set or kind is frozenset:
            return self.push(SET, SET_TAG if kind is set else FROZENSET_TAG, len(value),
                             iter(value), None)
        return self.write_other(value)

    cdef bint lies_elsewhere(self, object value):
        """Whether more refers to an element than its container, and this encoder in the midst of it."""
        cdef EncoderFrame frame = self.frames[len(self.frames) - 1]
        cdef Py_ssize_t here = 2
        if frame.kind == DICT:
            here = refers_to_values
        elif frame.kind == SET or frame.owner is not None:
            here = 3                    # by the frame; or by what it was taken from
        return Py_REFCNT(<PyObject*>value) > here

    cdef bint comes_again(self, object value) except -1:
        """Write the number of a value that was there before; of any other, that it may come again."""
        number = self.numbers.get(<size_t><PyObject*>value)
        if number is not None:
            size = max(1, (number.bit_length() + 7) // 8)
            self.write_payload(0xC7, AGAIN, size, number.to_bytes(size, "big"), None)
            return True
        self.write_length(0xC7, NOTED, 0)
        self.noted = value
        return False

    cdef int number(self, object value) except -1:
        """A value is complete that may come again."""
        self.numbers[<size_t><PyObject*>value] = len(self.kept)
        self.kept.append(value)
        return 0

    cdef int write_small(self, object value) except -1:
        """What needs a few bytes, which there are."""
        cdef unsigned char* after = put_simple(self.data + self.used, self.data + self.size,
                                        <PyObject*>value)
        if after is NULL:
            raise SystemError("no room for a number")
        self.used = after - self.data
        return 0

    cdef int write_other(self, object value) except -1:
        """A reference to a shared object, or the form of a value that msgpack does not know."""
        reference = self.codec.reference_of(value)
        if reference is not None:
            size = max(1, (reference.bit_length() + 7) // 8)
            return self.write_payload(0xC7, REFERENCE, size, reference.to_bytes(size, "big"), None)
        if type(value) is bytearray:
            return self.write_payload(0xC7, BYTEARRAY, len(<bytearray>value), value, None)
        array = parts_of_array(value, self.size)
        if array is not None:
            size, parts = array
            return self.write_payload(0xC7, NUMPY_ARRAY, size, None, parts)
        code, content = take_apart(value)
        if type(content) is bytes:
            return self.write_payload(0xC7, code, len(<bytes>content), content, None)
        return self.push(TUPLE, code, len(content), iter(content), value)

    cdef int write_text(self, str value) except -1:
        cdef Py_ssize_t size, start
        cdef const char* data
        if value.isascii():
            data = PyUnicode_AsUTF8AndSize(<PyObject*>value, &size)     # where it lies
            self.write_length(0xD9, 0, size)
            self.part, self.rest, self.left = value, <const unsigned char*>data, size
            return 0
        try:
            size = 0
            for start in range(0, len(value), LONG):
                size += len(value[start:start + LONG].encode())
        except UnicodeEncodeError:
            raise Misfit("text with a lone surrogate cannot travel; pass bytes (os.fsencode, for "
                         "a file's name)") from None
        self.write_length(0xD9, 0, size)
        self.parts = encoded(value)
        return 0

    cdef int write_payload(self, int tag, int code, object size, object part, object parts) except -1:
        """A header, and then `part` or, one after the other, `parts`."""
        if size > LENGTH_MAX:
            raise Misfit(f"{size} bytes in one value; 4 GiB is the most: make it several")
        self.write_length(tag, code, size)
        self.parts = parts
        if part is not None:
            self.set_part(part)
        if self.noted is not None:
            noted, self.noted = self.noted, None
            self.number(noted)
        return 0

    cdef int write_length(self, int tag, int code, uint64_t size) except -1:
        """The header of a text (0xD9), of bytes (0xC4) or of an extension type (0xC7)."""
        cdef unsigned char* p = self.data + self.used
        cdef unsigned char* end = self.data + self.size
        if size > LENGTH_MAX:
            raise Misfit(f"{size} bytes in one value; 4 GiB is the most: make it several")
        if size <= 0xFF:
            p = put_number(p, end, tag, size, 1)
        elif size <= 0xFFFF:
            p = put_number(p, end, tag + 1, size, 2)
        else:
            p = put_number(p, end, tag + 2, size, 4)
        if p is NULL or p >= end:
            raise SystemError("no room for a header")
        if tag == 0xC7:
            p[0] = <unsigned char>code
            p += 1
        self.used = p - self.data
        return 0

    cdef int set_part(self, object part) except -1:
        cdef ReadBuffer read = ReadBuffer(part)
        self.part = read                # which keeps it, as it is, until all is out
        self.rest, self.left = read.start, read.size
        return 0

    cdef int next_part(self) except -1:
        part = next(self.parts, None)
        if part is None:
            self.part = self.parts = None
        else:
            self.set_part(part)
        return 0

    cdef int push(self, Kind kind, int code, uint64_t count, object items, object owner) except -1:
        """The header of a container; its elements come next."""
        cdef EncoderFrame frame = EncoderFrame.__new__(EncoderFrame)
        cdef unsigned char* p = self.data + self.used
        cdef unsigned char* end = self.data + self.size
        cdef uint64_t size = count + (code != 0)
        cdef int short_tag = 0x80 if kind == DICT else 0x90
        require(self.codec.max_depth - <int>len(self.frames))
        if size > LENGTH_MAX:
            raise Misfit(f"{count} elements in one container; make it several")
        if size <= 0x0F:
            p[0] = <unsigned char>(short_tag | size)
            p += 1
        elif size <= 0xFFFF:
            p = put_number(p, end, 0xDE if kind == DICT else 0xDC, size, 2)
        else:
            p = put_number(p, end, 0xDF if kind == DICT else 0xDD, size, 4)
        if code:
            p[0], p[1], p[2] = 0xC7, 0, <unsigned char>code
            p += 3
        self.used = p - self.data
        frame.kind, frame.left, frame.items, frame.owner = kind, count, items, owner
        frame.noted, self.noted = self.noted, None
        self.frames.append(frame)
        return 0


cdef Py_ssize_t references_to_values() except -1:
    """How much refers to a dict's value that lies there alone, while it is written: the iterator keeps it, too."""
    items = iter({"": []}.items())
    _, value = next(items)
    return Py_REFCNT(<PyObject*>value)


cdef Py_ssize_t refers_to_values = references_to_values()


cdef bint has_long(tuple value):
    """Whether a text in a short tuple is one to encode in parts."""
    for item in value[:16]:
        if type(item) is str and len(<str>item) > LONG or type(item) is tuple and has_long(item):
            return True
    return False


def encoded(str value):
    """A text in UTF-8, part by part."""
    for start in range(0, len(value), LONG):
        yield value[start:start + LONG].encode()


def encode_whole(Codec codec, value, str what, *, bint is_state=False):
    """The encoding of a value of any size, in one. Raises NotSerializable."""
    encoder = Encoder(codec, value, what, 65536, is_state=is_state)
    return b"".join(iter(encoder.next_piece, None))


def encode_nothing(Codec codec, value, str what):
    """Encode a value, and keep nothing of it. Raises NotSerializable."""
    encoder = Encoder(codec, value, what, 65536)
    while encoder.next_piece() is not None:
        pass
