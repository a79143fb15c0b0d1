"""Stack: the layers of one endpoint, driven from outside."""

from libc.stdint cimport int64_t

from orcalike.transport.layers.base cimport Core, End, Layer
from orcalike.transport.layers.com cimport Com
from orcalike.transport.wire.message cimport Message


cdef class Stack(Core):
    cdef readonly tuple layers      # top first
    cdef readonly Layer top
    cdef readonly Com bottom
    cdef End end                    # above the top, and below the bottom
    cdef readonly Layer members     # the layer that knows the members; None without one
    cdef readonly object config
    cdef Py_ssize_t depth           # how many layers
    cdef void** chain               # they, for what looks at all of them at each input

    cdef inline void enter(self, int64_t now) noexcept:
        """An input begins."""
        self.now = now
        self.wall = now + self.epoch
        self.inputs += 1

    cdef int stand_in(self, Layer former, Layer layer) except -1
    cdef bint refuse(self, int link, object error) except -1
    cdef int settle(self) except -1
    cdef int receive_frame(self, int link, Message frame, int64_t now) except -1

    cdef inline int64_t next_deadline(self) noexcept:
        """When `expire` is due, in ns; NEVER if nothing waits for the time."""
        cdef int64_t least = self.top.above.deadline
        cdef Py_ssize_t i
        for i in range(self.depth):
            least = min(least, (<Layer>self.chain[i]).deadline)
        return least

    cdef int hand_up_fast(self) except -1
    cpdef woken(self, int64_t now)
    cpdef catch_up(self, int64_t now)
    cpdef flush_packets(self, int64_t now)
