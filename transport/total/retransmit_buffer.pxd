"""The retransmission buffer: the packets that have their number and are not stable."""

from libc.stdint cimport uint64_t

from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring


cdef class Held:
    """A packet with its seqno, kept until it is stable."""
    cdef Message message
    cdef Py_ssize_t size            # of its body, which ends where the message ends
    cdef int position                  # of its sender; `departed_position` if it has left
    cdef int degree
    cdef uint64_t counter, seqno, stamp

    cdef Message body(self)


cdef class RetransmitBuffer:
    cdef Ring packets
    cdef readonly Py_ssize_t bytes  # of all bodies

    cdef Held put(self, Message message, Py_ssize_t size, int position, int degree, uint64_t counter,
                  uint64_t seqno, uint64_t stamp)
    cdef Held at(self, uint64_t seqno)
    cdef int trim(self, uint64_t floor) except -1
    cdef Held take_last(self)
    cdef list all(self)

    cdef inline Py_ssize_t count(self) noexcept:
        return self.packets.count


cdef Message body_of(Message message, Py_ssize_t size)
