"""A ring of packets: what TOTAL knows of each, as C structures."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t

from orcalike.transport.wire.message cimport Message, let_go


cdef struct Packet:
    PyObject* message               # a Message, owned
    Py_ssize_t size                 # of its body, which ends where the message ends
    int position                    # of its sender; `departed_position` if it has left
    int degree
    uint64_t counter                # its sender's own number for it
    uint64_t seqno, stamp           # of one that has its place in the order


cdef class Packets:
    cdef Packet* items              # owned; `capacity` of them, a power of two
    cdef Py_ssize_t first, count, capacity

    cdef int grow(self) except -1
    cdef void drop_last(self) noexcept
    cdef void clear(self) noexcept
    cdef Packet* put_first(self, Message message, Py_ssize_t size) except NULL

    cdef inline Packet* at(self, Py_ssize_t i) noexcept:
        """The packet that has `i` before it; it moves with the next one that is put."""
        return &self.items[(self.first + i) & (self.capacity - 1)]

    cdef inline Packet* put(self, Message message, Py_ssize_t size) except NULL:
        """One more at the end; the caller says what else is known of it."""
        cdef Packet* packet
        if self.count == self.capacity:
            self.grow()
        packet = self.at(self.count)
        self.count += 1
        Py_INCREF(message)
        packet.message, packet.size = <PyObject*>message, size
        return packet

    cdef inline void drop_first(self) noexcept:
        cdef PyObject* message = self.items[self.first].message
        self.first = (self.first + 1) & (self.capacity - 1)
        self.count -= 1
        let_go(message)


cdef Message body_of(Message message, Py_ssize_t size)
