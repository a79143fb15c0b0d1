"""A ring of packets: what TOTAL knows of each, as C structures. Each packet is put into one, and a ring costs no object."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport free, malloc

from orcalike.transport.wire.message cimport Message, let_go


@cython.no_gc                           # a message refers to nothing
cdef class Packets:
    """A queue that grows as it must. Look at `count` before you look at, or drop, one of it."""

    def __cinit__(self):
        self.capacity = 16
        self.items = <Packet*>malloc(self.capacity * sizeof(Packet))
        if self.items is NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.items is not NULL:
            self.clear()
            free(self.items)

    cdef Packet* put_first(self, Message message, Py_ssize_t size) except NULL:
        """One more before the first; the caller says what else is known of it."""
        cdef Packet* packet
        if self.count == self.capacity:
            self.grow()
        self.first = (self.first - 1) & (self.capacity - 1)
        self.count += 1
        packet = self.at(0)
        Py_INCREF(message)
        packet.message, packet.size = <PyObject*>message, size
        return packet

    cdef void drop_last(self) noexcept:
        self.count -= 1
        let_go(self.at(self.count).message)

    cdef void clear(self) noexcept:
        while self.count:
            self.drop_first()

    cdef int grow(self) except -1:
        cdef Packet* items = <Packet*>malloc(2 * self.capacity * sizeof(Packet))
        cdef Py_ssize_t i
        if items is NULL:
            raise MemoryError
        for i in range(self.count):
            items[i] = self.at(i)[0]
        free(self.items)
        self.items = items
        self.first = 0
        self.capacity *= 2
        return 0


cdef Message body_of(Message message, Py_ssize_t size):
    """The packet without the headers of the view in which it was sent first; it borrows."""
    cdef Message body = Message.view(message.base + message.stop - size, size)
    body.owner = message if message.owner is None else message.owner
    return body
