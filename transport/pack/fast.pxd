"""A message that nothing is before, put into the order past the layers."""

from libc.stdint cimport uint64_t

from orcalike.transport.fast cimport HEADERS_MAX, FastLayer
from orcalike.transport.layers.base cimport Layer
from orcalike.transport.pack.degrees cimport DegreesOfMessages
from orcalike.transport.wire.message cimport Message


cdef class FastPackets(Layer):
    cdef readonly uint64_t ticket   # the next message's number: this member's own count
    cdef readonly uint64_t returned # of these, how many were delivered here
    cdef readonly Py_ssize_t under_way  # bytes that were cast and not delivered here yet
    cdef readonly Py_ssize_t fragment   # a packet of more bytes is cut
    cdef DegreesOfMessages degrees  # of each message
    cdef unsigned char run_degree   # of the message that was cast last, or is to be next
    cdef Message packet             # the open one, or None
    cdef bint ready                 # there is something to cast
    cdef bint hands_up              # there is something to hand up
    cdef bint allows_fast           # messages may go past the layers below
    cdef FastLayer way              # the layer to which they go in this view; or None
    cdef unsigned char headers[HEADERS_MAX]     # what the layers between put before each cast
    cdef Py_ssize_t before          # bytes of these
    cdef bint has_asked             # whether there is one has been found out
    cdef unsigned char* written     # a packet that is written there
    cdef bint fast_comes            # it is in the order, and to be handed up with all else
    cdef uint64_t fast_casts        # how many there were

    cdef inline int note_degree(self, unsigned char degree) except -1:
        """The next message has that degree."""
        if degree != self.run_degree:
            self.degrees.begin(self.ticket, degree, self.returned)
            self.run_degree = degree
        return 0

    cdef inline bint is_idle(self) noexcept:
        """Whether nothing of this member is under way or gathers, and messages may go past the layers below, as far as is known."""
        return self.ticket == self.returned and self.packet is None and (self.way is not None or not self.has_asked)

    cdef unsigned char* find_room(self, Py_ssize_t size, unsigned char degree) except? NULL
    cdef int ask_below(self) except -1
    cdef bint cast_fast(self, const unsigned char* message, Py_ssize_t size, unsigned char degree, uint64_t spares) except -1
