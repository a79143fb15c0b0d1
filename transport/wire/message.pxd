"""A message: one buffer, with room in front for the headers that layers push."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "Python.h":        # where one reference is left, it may be another message again
    Py_ssize_t Py_REFCNT(PyObject*) noexcept

cdef enum:
    HEADROOM = 80               # what all layers of a deep stack push together
    MESSAGE_MAX = 16777216      # 16 MiB: the largest message that may travel (S9)

# As a message's count: a part of a packet, which holds no whole message.
cdef enum:
    NO_MESSAGES = 0x7FFFFFFF


cdef class Message:
    cdef unsigned char* base    # the memory; of the message itself, or borrowed from a driver
    cdef Py_ssize_t start       # where the outermost header (or the body) begins
    cdef Py_ssize_t stop        # one past the last byte
    cdef Py_ssize_t capacity
    cdef bint borrowed          # of `owner`, or valid only during the input: keep a copy()
    cdef Message owner          # whose memory it borrows, which lives as long; or None
    cdef public uint32_t count  # how many messages it holds, where a layer has packed them; or 0
    cdef public uint8_t degree  # its resilience degree: 254 for a majority, 255 for all
    cdef public uint64_t spares # a bit for each 64th object: those that nothing in it is about
    # What layers learn about it on the way up.
    cdef public int source      # the sender's position in the view, or -1
    cdef public int link        # the link that it arrived by, or -1
    cdef public uint32_t index  # its position in its packet
    cdef public uint64_t seqno  # its packet's place in the total order
    cdef public uint64_t stamp  # the sequencer's clock, ns since the epoch, never less than before
    cdef public uint64_t ticket # the sender's own count of its messages

    @staticmethod
    cdef Message new(Py_ssize_t room)
    @staticmethod
    cdef Message view(unsigned char* data, Py_ssize_t size)
    cdef bint fill_again(self, Py_ssize_t room) noexcept
    cdef int make_headroom(self, Py_ssize_t size) except -1
    cdef int make_room(self, Py_ssize_t size) except -1
    cpdef Message copy(self)

    cdef inline void view_again(self, unsigned char* data, Py_ssize_t size) noexcept:
        """Be a new message that borrows these bytes: it was one that nothing holds any more."""
        self.base, self.start, self.stop, self.capacity = data, 0, size, size
        self.count = self.index = self.degree = 0
        self.source = self.link = -1
        self.spares = self.seqno = self.stamp = self.ticket = 0

    cdef inline unsigned char* push(self, Py_ssize_t size) except NULL:
        """Room for a header of `size` bytes in front of what is there."""
        if self.start < size:
            self.make_headroom(size)
        self.start -= size
        return self.base + self.start

    cdef inline unsigned char* room(self, Py_ssize_t size) except NULL:
        """At least `size` free bytes behind what is there; the caller moves `stop`."""
        if self.capacity - self.stop < size:
            self.make_room(size)
        return self.base + self.stop

    cdef inline unsigned char* pop(self, Py_ssize_t size) noexcept:
        """The header of `size` bytes, taken off; NULL where the message is shorter."""
        if self.stop - self.start < size:
            return NULL
        self.start += size
        return self.base + self.start - size

    cdef inline Py_ssize_t size(self) noexcept:
        return self.stop - self.start

    cdef inline unsigned char* data(self) noexcept:
        return self.base + self.start


cdef void let_go(PyObject* message) noexcept
