"""STABLE: which members have seen which messages."""

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class Matrix:
    """The stability matrix, as one member keeps it."""
    cdef readonly tuple members     # those with replicas, by rank
    cdef readonly uint64_t delivered    # the seqno of the newest message here
    cdef readonly Py_ssize_t window
    cdef dict acked                 # incarnation -> up to which seqno it has seen all
    cdef dict counts                # incarnation -> its messages up to `floor`
    cdef uint64_t floor             # what is up to here is counted, and not in `order` any more
    cdef object order               # deque of (seqno, incarnation, messages) after that
    cdef dict late                  # incarnation -> its column, where it is behind `floor`

    cdef int deliver(self, uint64_t seqno, object sender, uint64_t messages) except -1
    cdef bint note(self, object member, uint64_t seqno) except -1
    cdef int settle(self, uint64_t seqno) except -1
    cdef int count_oldest(self) except -1
    cdef dict column(self, object member)
    cdef dict totals(self)


cdef class Stable(Layer):
    cdef readonly Matrix matrix
    cdef object view
    cdef list senders               # incarnations by position
    cdef tuple others               # positions of the others with replicas
    cdef uint64_t own               # this member has seen all up to here
    cdef uint64_t reported          # and has reported that to the others, in this view
    cdef bint asks                  # it has just come, and needs the others' reports
    cdef bint changed               # the matrix has, since it was last handed up
    cdef bint yields                # the other layers go on first: one of them may cast
    cdef bint restored              # this layer's piece of the state was taken

    cdef int learn(self, object member, uint64_t seqno) except -1
    cdef int report(self, int kind, tuple positions) except -1
