"""RING: one order in shared memory."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.ring_segment cimport ring_entry
from orcalike.transport.ring.listening cimport ListeningOrder
from orcalike.transport.wire.message cimport Message

cdef enum:
    NO_CODE = -32768            # no code of the C functions: an exception was raised

cdef class Unordered:
    """A packet of this member that is not in the order yet."""
    cdef Message message
    cdef Py_ssize_t size            # of its body, which ends where the message ends
    cdef Py_ssize_t sent            # of that, in this view: a large one goes in parts


cdef class SharedOrder(ListeningOrder):
    cdef readonly tuple begins      # `next` as the view began, twice
    cdef bint report_is_due           # it was asked to flush, and has not come to the fence
    cdef bint awaits_cut            # `holds` is due when it has
    cdef uint64_t input             # the core's, for which the next two are
    cdef int64_t busy_until         # until then this member is taken to write much, and other threads deliver nothing
    cdef frozenset lacking
    cdef int64_t stuck_at           # a deadline: to ask for a view, where the memory says that this one is over

    cdef bint append(self, Message message, Py_ssize_t size, Py_ssize_t* sent) except -1
    cdef int put(self, Message message, Py_ssize_t whole, Py_ssize_t* sent, unsigned char** own) except NO_CODE
    cdef int pass_up(self, Message message, int kind, int degree, unsigned row, uint64_t wall) except NO_CODE
    cdef int hand_up_placed(self, Message message) except NO_CODE
    cdef Message copied(self, ring_entry* entry, int kind)
    cdef int submit_more(self) except -1
    cdef int deliver(self, ring_entry* entry) except NO_CODE
    cdef int report(self) except -1
    cdef int meet_fence(self) except -1
    cdef int end_view(self) except -1
    cdef int leave_order(self) except -1
    cpdef list hand_over(self, object view, object it)
