# cython: allow_none_for_extension_args=False
"""FAST: the way of a packet past the layers, where nothing is before it (Horus 4.11: H81; ADR-28).

What the layers would do with such a packet is known. So PACK writes it to where the layer that orders has room for it, with
the headers that they would put before it, and has it swapped into the order. If it is the next one there, PACK hands it up at once;
else it comes with what is before it, through the layers. Whatever else is the case goes through them from the start, and nothing was
done then.

A layer between says in `fast` what it puts before each cast, if it does nothing else with casts on their way down and up, and will not in this view.
"""

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class FastLayer(Layer):
    """A layer that orders, and takes packets from PACK past the layers between."""

    cdef unsigned char* fast_room(self, Py_ssize_t size, unsigned char degree) except? NULL:
        """Where to write up to `size` bytes, if they can be put into the order, and nothing is before them; else NULL."""
        return NULL

    cdef bint fast_append(self, Py_ssize_t size, uint64_t spares) except -1:
        """Put what was written into the order; False if there is no place in it now. `spares`: as a message's."""
        return False

    cdef Message fast_take(self):
        """The packet, if it is the next one in the order; else None, and what is before it is handed up."""
        return None

    cdef int fast_end(self) except -1:
        """The packet has run: say so to the other members, and wake them."""
        return 0
