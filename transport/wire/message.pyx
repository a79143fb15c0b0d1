"""A message: one buffer, with room in front for the headers that layers push.

A layer's header costs no copy (Horus, section 3): going down it is pushed in front of what is
there, going up it is popped. A message that a driver hands up borrows the driver's receive
buffer and is valid only until the upcall returns; to keep it, take a `copy()`.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from orcalike.transport.wire.read_buffer cimport ReadBuffer

cdef extern from "Python.h":
    ctypedef struct PyObjectArenaAllocator:
        void* ctx
        void* (*alloc)(void* ctx, size_t size) noexcept
        void (*free)(void* ctx, void* pages, size_t size) noexcept
    void PyObject_GetArenaAllocator(PyObjectArenaAllocator* allocator) noexcept

cdef enum:
    SMALL = 640                 # capacities of which some buffers are kept: of small messages,
    LARGE = 20480               # and of packets of PACK's own size, in whole pages
    LARGE_LEAST = 16384
    SMALL_KEPT = 512            # as many as a quarter of TOTAL's window, which goes at once, and more; idle ones count
    LARGE_KEPT = 16

# Buffers that no message has: malloc takes hundreds of instructions, free as well. Large ones come
# from the system and go back to it: a burst fills thousands, and malloc would keep what they took.
cdef unsigned char* small[SMALL_KEPT]
cdef unsigned char* large[LARGE_KEPT]
cdef PyObject* idle[SMALL_KEPT]     # messages that only this refers to, with small buffers
cdef int small_count = 0
cdef int idle_count = 0
cdef int large_count = 0
cdef PyObjectArenaAllocator system_pages

PyObject_GetArenaAllocator(&system_pages)


@cython.freelist(64)
@cython.final
@cython.no_gc                           # an owner owns its memory, and has no owner
cdef class Message:
    """A body and its headers. `Message(b"...")` holds a copy of the body, with headroom."""

    def __cinit__(self):
        self.source = -1
        self.link = -1

    def __init__(self, body=b""):
        cdef ReadBuffer read = ReadBuffer(body)
        allocate(self, read.size)
        if read.size:
            memcpy(self.base + self.start, read.start, read.size)
        self.stop += read.size

    def __dealloc__(self):
        if not self.borrowed:
            give_back(self.base, self.capacity)

    @staticmethod
    cdef Message new(Py_ssize_t room):
        """An empty message with `room` bytes to fill, and headroom."""
        global idle_count
        cdef Message self
        if idle_count and HEADROOM + room <= SMALL:
            idle_count -= 1
            self = <Message>idle[idle_count]
            Py_DECREF(self)
            self.fill_again(room)
        else:
            self = Message.__new__(Message)
            allocate(self, room)
        return self

    @staticmethod
    cdef Message view(unsigned char* data, Py_ssize_t size):
        """A message that borrows `size` bytes of a driver's buffer."""
        cdef Message self = Message.__new__(Message)
        self.borrowed = True
        self.base = data
        self.stop = self.capacity = size
        return self

    cdef bint fill_again(self, Py_ssize_t room) noexcept:
        """Be a new message, with a buffer of its own and `room` bytes to fill; False if it is too small."""
        if self.capacity < HEADROOM + room:
            return False
        self.start = self.stop = HEADROOM
        self.count = self.index = self.degree = 0
        self.source = self.link = -1
        self.spares = self.seqno = self.stamp = self.ticket = 0
        return True

    cdef int make_headroom(self, Py_ssize_t size) except -1:
        """Move what is there, for a header of `size` bytes in front and for others."""
        cdef Py_ssize_t missing = size + HEADROOM
        if self.borrowed:
            raise ValueError("a borrowed message has no headroom: push on a copy()")
        resize(self, self.capacity + missing)
        memmove(self.base + self.start + missing, self.base + self.start, self.stop - self.start)
        self.start += missing
        self.stop += missing
        return 0

    cdef int make_room(self, Py_ssize_t size) except -1:
        """Grow, so that at least `size` bytes behind what is there are free."""
        if self.borrowed:
            raise ValueError("a borrowed message does not grow: fill a copy()")
        resize(self, max(2 * self.capacity, self.stop + size))
        return 0

    cpdef Message copy(self):
        """A message of its own with the same bytes and marks, and headroom."""
        cdef Py_ssize_t size = self.stop - self.start
        cdef Message other = Message.new(size)
        memcpy(other.base + other.start, self.base + self.start, size)
        other.stop += size
        other.count = self.count
        other.source = self.source
        other.link = self.link
        other.index = self.index
        other.seqno = self.seqno
        other.stamp = self.stamp
        other.ticket = self.ticket
        other.degree = self.degree
        other.spares = self.spares
        return other

    def push_header(self, header):
        """Push `header` in front: what a layer that is written in Python does going down."""
        cdef ReadBuffer read = ReadBuffer(header)
        if read.size:
            memcpy(self.push(read.size), read.start, read.size)

    def overwrite(self, begin):
        """Put these bytes over its first ones; raises ValueError if it has fewer."""
        cdef ReadBuffer read = ReadBuffer(begin)
        if read.size > self.stop - self.start:
            raise ValueError(f"{read.size} bytes over a message of {len(self)}")
        if read.size:
            memcpy(self.base + self.start, read.start, read.size)

    def pop_header(self, Py_ssize_t size):
        """Take a header of `size` bytes off; raises ValueError if the message is shorter."""
        cdef unsigned char* header = self.pop(size) if size >= 0 else NULL
        if header is NULL:
            raise ValueError(f"a header of {size} bytes from a message of {len(self)}")
        return PyBytes_FromStringAndSize(<char*>header, size)

    @property
    def body(self):
        """The bytes that are there now, without the headers popped so far."""
        return PyBytes_FromStringAndSize(<char*>self.base + self.start, self.stop - self.start)

    def __len__(self):
        return self.stop - self.start

    def __repr__(self):
        return f"<Message of {len(self)} bytes>"


cdef int allocate(Message self, Py_ssize_t room) except -1:
    cdef Py_ssize_t capacity = fitting(HEADROOM + room)
    self.base = take(capacity)
    self.capacity = capacity
    self.start = self.stop = HEADROOM
    return 0


cdef Py_ssize_t fitting(Py_ssize_t capacity) noexcept:
    """The capacity that a buffer has if so much is asked for."""
    if capacity <= SMALL:
        return SMALL
    return LARGE if LARGE_LEAST <= capacity <= LARGE else capacity


cdef unsigned char* take(Py_ssize_t capacity) except NULL:
    """A buffer."""
    global small_count, large_count
    cdef unsigned char* base
    if capacity == SMALL and small_count:
        small_count -= 1
        return small[small_count]
    if capacity == LARGE and large_count:
        large_count -= 1
        return large[large_count]
    if capacity == LARGE:
        base = <unsigned char*>system_pages.alloc(system_pages.ctx, LARGE)
    else:
        base = <unsigned char*>malloc(capacity)
    if base is NULL:
        raise MemoryError
    return base


cdef void give_back(unsigned char* base, Py_ssize_t capacity) noexcept:
    """Nothing uses a buffer any more: keep it, or free it."""
    global small_count, large_count
    if base is NULL:
        return
    if capacity == SMALL and small_count + idle_count < SMALL_KEPT:
        small[small_count] = base
        small_count += 1
    elif capacity == LARGE and large_count < LARGE_KEPT:
        large[large_count] = base
        large_count += 1
    elif capacity == LARGE:
        system_pages.free(system_pages.ctx, base, LARGE)
    else:
        free(base)


cdef int resize(Message self, Py_ssize_t capacity) except -1:
    cdef void* base
    capacity = fitting(capacity)
    if self.capacity <= LARGE:
        base = take(capacity)
        memcpy(base, self.base, min(self.stop, capacity))
        give_back(self.base, self.capacity)
    else:
        base = realloc(self.base, capacity)
        if base is NULL:
            raise MemoryError
    self.base = <unsigned char*>base
    self.capacity = capacity
    return 0


cdef void let_go(PyObject* message) noexcept:
    """A reference goes. If it was the last one, a message with a small buffer is another one again, later."""
    global idle_count
    cdef Message it = <Message>message
    if (Py_REFCNT(message) == 2 and not it.borrowed and it.capacity == SMALL
            and small_count + idle_count < SMALL_KEPT):
        idle[idle_count] = message
        idle_count += 1
    else:
        Py_DECREF(it)
