"""A value of any size from a stream: decoded piece by piece (`stream_encoder` gives the pieces).

The decoder keeps what has come, and makes nothing on the word of a length: a container grows as its
elements arrive, a byte string doubles as its bytes do, and a NumPy array is address space until they
are there. So what a false count makes it build is bounded by the bytes that were received.
"""

from cpython.bytes cimport PyBytes_AS_STRING as bytes_of
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from orcalike.runtime import extension_codes, extension_types
from orcalike.runtime.errors import ReplicaDivergence, Unreadable
from orcalike.transport.errors import OrcalikeError, ProtocolError
from orcalike.transport.wording import text_of

from orcalike.runtime.marshal cimport Codec
from orcalike.runtime.plain cimport Py_DECREF, get_simple, load
from orcalike.transport.wire.read_buffer cimport ReadBuffer

cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char*, Py_ssize_t) except NULL
    int resize "_PyBytes_Resize"(PyObject**, Py_ssize_t) except -1
    char* start_of "PyBytes_AS_STRING"(PyObject*)

cdef int NOTED = extension_codes.NOTED
cdef int AGAIN = extension_codes.AGAIN
cdef int LAST_LEAF = extension_codes.LAST_LEAF
cdef int FIRST_TAG = extension_codes.FIRST_TAG
cdef int LAST_TAG = extension_codes.LAST_TAG
cdef int LIST_TAG = extension_codes.Code.LIST
cdef int SET_TAG = extension_codes.Code.SET
cdef int BYTEARRAY = extension_codes.Code.BYTEARRAY
cdef int NUMPY_ARRAY = extension_codes.Code.NUMPY_ARRAY
cdef object rebuild = extension_types.rebuild
cdef object ArraySink = extension_types.ArraySink

cdef enum:
    FIRST_ROOM = 65536      # bytes that are taken on the word of a length


cdef enum Kind:
    TUPLE
    LIST
    SET
    DICT
    TAGGED                  # a tuple of what `rebuild` takes


cdef class DecoderFrame:
    """A container that is under way."""

    cdef Kind kind
    cdef int code           # of its tag
    cdef uint64_t left      # elements that are still to come
    cdef uint64_t pairs     # of a dict: its items that are complete
    cdef object items       # what it is made in
    cdef object key         # of a dict: its key, while the value is under way
    cdef bint has_key       # the key is done
    cdef bint noted         # it may come again


cdef class Decoder:
    """Decodes one value from pieces; `what` names it in errors. `result` gives it at the end."""

    cdef Codec codec
    cdef str what
    cdef list frames
    cdef bytes tail         # a header that is not all there
    cdef bint over
    cdef object value
    cdef Py_ssize_t came    # bytes
    cdef list kept          # the values that may come again, by number
    cdef bint noted         # the value that comes next is one
    # A payload that is under way: of an extension type, of bytes or of a text.
    cdef bint filling
    cdef int tag
    cdef int code
    cdef Py_ssize_t length, got, room
    cdef PyObject* payload  # bytes, owned
    cdef object sink

    def __init__(self, Codec codec not None, str what not None):
        self.codec = codec
        self.what = what
        self.frames = []
        self.kept = []
        self.tail = b""

    def __dealloc__(self):
        if self.payload is not NULL:
            Py_DECREF(self.payload)

    def feed(self, data):
        """Decode what has come. Raises ProtocolError for what is malformed.

        What is this process's own matter is a fault of it: ReplicaDivergence where it lacks a
        class, a module or a zone; MemoryError; RecursionError.
        """
        cdef ReadBuffer came = ReadBuffer(data)
        cdef bytes joined
        cdef const unsigned char* p
        if came.size == 0:
            return
        self.came += came.size
        if self.tail:
            joined = self.tail + bytes(data)
            self.tail = b""
            p = <const unsigned char*>bytes_of(joined)
            self.parse(p, p + len(joined))
        else:
            self.parse(came.start, came.start + came.size)

    def result(self):
        """The value. Raises ProtocolError if it is not whole."""
        if not self.over:
            self.refuse("is cut short")
        return self.value

    cdef int refuse(self, str why) except -1:
        raise ProtocolError(f"{self.what} {why}, at byte {self.came} or before")

    cdef int parse(self, const unsigned char* p, const unsigned char* end) except -1:
        cdef const unsigned char* after
        cdef PyObject* simple
        while p < end:
            if self.filling:
                p = self.fill(p, end)
                continue
            if self.over:
                self.refuse("has more bytes than it may")
            after = get_simple(p, end, &simple)
            if after is not NULL:
                value = <object>simple
                Py_DECREF(simple)
                self.complete(value, self.take_note())
                p = after
                continue
            after = self.header(p, end)
            if after is NULL:
                self.tail = p[:end - p]
                return 0
            p = after
        return 0

    cdef const unsigned char* header(self, const unsigned char* p, const unsigned char* end) except? NULL:
        """What is no small value: begin with it; NULL where the header is not all there."""
        cdef int tag = p[0]
        cdef int width = 0
        cdef uint64_t size
        p += 1
        if tag & 0xF0 == 0x80:
            self.push(DICT, 2 * <uint64_t>(tag & 0x0F))
            return p
        if tag & 0xF0 == 0x90:
            self.push(TUPLE, tag & 0x0F)
            return p
        if tag & 0xE0 == 0xA0:
            self.begin_payload(0xD9, 0, tag & 0x1F)
            return p
        if 0xC4 <= tag <= 0xC6:
            width = 1 << (tag - 0xC4)
        elif 0xC7 <= tag <= 0xC9:
            width = 1 << (tag - 0xC7)
        elif 0xD9 <= tag <= 0xDB:
            width = 1 << (tag - 0xD9)
        elif 0xDC <= tag <= 0xDF:
            width = 4 if tag & 1 else 2
        elif 0xCB <= tag <= 0xD3:
            return NULL                 # a number that is cut: `get` reads it when it is there
        elif not 0xD4 <= tag <= 0xD8:
            self.refuse("has a type that is not known")
        if end - p < width:
            return NULL
        size = load(p, width) if width else 1 << (tag - 0xD4)
        p += width
        if tag >= 0xDC:
            self.push(DICT if tag >= 0xDE else TUPLE, 2 * size if tag >= 0xDE else size)
        elif 0xC7 <= tag <= 0xC9 or 0xD4 <= tag <= 0xD8:
            if p >= end:
                return NULL
            self.begin_extension(p[0], size)
            p += 1
        else:
            self.begin_payload(0xC4 if tag <= 0xC6 else 0xD9, 0, size)
        return p

    cdef int push(self, Kind kind, uint64_t count) except -1:
        cdef DecoderFrame frame
        if <Py_ssize_t>len(self.frames) >= self.codec.max_depth:
            self.refuse("is nested too deep")
        if count == 0:
            return self.complete({} if kind == DICT else (), self.take_note())
        frame = DecoderFrame.__new__(DecoderFrame)
        frame.kind, frame.left = kind, count
        frame.items = {} if kind == DICT else []
        frame.noted = self.take_note()
        self.frames.append(frame)
        return 0

    cdef int begin_extension(self, int code, uint64_t size) except -1:
        cdef DecoderFrame frame
        if code == NOTED:
            if size or self.noted:
                self.refuse("has a note where none may be")
            self.noted = True
            return 0
        if FIRST_TAG <= code <= LAST_TAG:
            frame = self.frames[len(self.frames) - 1] if self.frames else None
            if size or frame is None or frame.kind != TUPLE or frame.items:
                self.refuse("has a tag where none may be")
            frame.code = code
            frame.kind = LIST if code == LIST_TAG else SET if code == SET_TAG else TAGGED
            if frame.kind == SET:
                frame.items = set()
            frame.left -= 1
            return self.close_full()
        if not 1 <= code <= LAST_LEAF and code != AGAIN:
            self.refuse("has a type that is not known")
        return self.begin_payload(0xC7, code, size)

    cdef int begin_payload(self, int tag, int code, uint64_t size) except -1:
        self.filling = True
        self.tag, self.code = tag, code
        self.length, self.got = <Py_ssize_t>size, 0
        if code == BYTEARRAY and size > FIRST_ROOM:
            self.sink = bytearray()
        elif code == NUMPY_ARRAY and size > FIRST_ROOM:
            self.sink = ArraySink(size)
        else:
            self.room = min(self.length, FIRST_ROOM)
            self.payload = new_bytes(NULL, self.room)
        return self.end_payload() if size == 0 else 0

    cdef const unsigned char* fill(self, const unsigned char* p, const unsigned char* end) except NULL:
        """Take bytes of a payload."""
        cdef Py_ssize_t count = min(end - p, self.length - self.got)
        if self.sink is None:
            if self.got + count > self.room:
                self.room = min(self.length, max(2 * self.room, self.got + count))
                resize(&self.payload, self.room)
            memcpy(start_of(self.payload) + self.got, p, count)
        elif self.code == BYTEARRAY:
            (<bytearray>self.sink).extend(p[:count])
        else:
            self.put_array(p, count)
        self.got += count
        if self.got == self.length:
            self.end_payload()
        return p + count

    cdef int put_array(self, const unsigned char* p, Py_ssize_t count) except -1:
        try:
            self.sink.write(p[:count])
        except Unreadable as error:
            raise ReplicaDivergence(f"{self.what} cannot be read here: {error}") from None
        except (OrcalikeError, MemoryError):
            raise
        except Exception as error:
            self.refuse(f"has an array that cannot be: {text_of(error)}")
        return 0

    cdef int end_payload(self) except -1:
        """All of a payload is there: what does it stand for?"""
        cdef object value
        self.filling = False
        sink, self.sink = self.sink, None
        if sink is None:
            data = <bytes>self.payload
            Py_DECREF(self.payload)
            self.payload = NULL
        try:
            if sink is not None:
                value = sink if self.code == BYTEARRAY else sink.close()
            elif self.tag == 0xC4:
                value = data
            elif self.tag == 0xD9:
                value = data.decode()
            elif self.code == AGAIN:
                value = self.kept[int.from_bytes(data, "big")]
            else:
                value = self.codec._extension(self.code, data)
        except Unreadable as error:
            raise ReplicaDivergence(f"{self.what} cannot be read here: {error}") from None
        except (OrcalikeError, MemoryError, RecursionError):
            raise
        except Exception as error:
            self.refuse(f"has a part that cannot be: {type(error).__name__}: {text_of(error)}")
        return self.complete(value, self.take_note())

    cdef bint take_note(self) noexcept:
        """Whether the value that begins now may come again."""
        cdef bint noted = self.noted
        self.noted = False
        return noted

    cdef int complete(self, object value, bint noted) except -1:
        """A value is complete that may be `noted`."""
        if noted:
            self.kept.append(value)
        return self.add(value)

    cdef int add(self, object value) except -1:
        """A value is complete: it is an element of the container on top, or all there is."""
        cdef DecoderFrame frame
        if not self.frames:
            self.value = value
            self.over = True
            return 0
        frame = self.frames[len(self.frames) - 1]
        try:
            if frame.kind == DICT:
                if frame.has_key:
                    (<dict>frame.items)[frame.key] = value
                    frame.pairs += 1
                    frame.key = None
                else:
                    frame.key = value
                frame.has_key = not frame.has_key
            elif frame.kind == SET:
                (<set>frame.items).add(value)
            else:
                (<list>frame.items).append(value)
        except TypeError as error:
            self.refuse(f"has a key that cannot be: {text_of(error)}")
        frame.left -= 1
        return self.close_full()

    cdef int close_full(self) except -1:
        """Close the container on top where nothing of it is to come."""
        cdef DecoderFrame frame = self.frames[len(self.frames) - 1]
        cdef object value
        if frame.left:
            return 0
        self.frames.pop()
        value = frame.items
        if frame.kind == DICT:
            if <uint64_t>len(<dict>value) != frame.pairs:
                self.refuse("has two keys that are the same once they have travelled")
        elif frame.kind == TUPLE:
            value = tuple(<list>value)
        elif frame.kind == TAGGED:
            value = self.rebuilt(frame.code, tuple(<list>value))
        return self.complete(value, frame.noted)

    cdef object rebuilt(self, int code, tuple items):
        try:
            return rebuild(code, items)
        except Unreadable as error:
            raise ReplicaDivergence(f"{self.what} cannot be read here: {error}") from None
        except (OrcalikeError, MemoryError, RecursionError):
            raise
        except Exception as error:
            self.refuse(f"has a part that cannot be: {type(error).__name__}: {text_of(error)}")


def decode_whole(Codec codec, data, str what):
    """The value that `encode_whole` gave the encoding of. Raises as `Decoder.feed` does."""
    decoder = Decoder(codec, what)
    decoder.feed(data)
    return decoder.result()
