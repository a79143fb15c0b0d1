"""What each member of a view has sent, expects and holds, by its position.

All members keep `last`, since any of them may have to order the next packet; what the others
expect and hold is sent to the sequencer alone, which counts it (Amoeba 3.1: A22; H2).
"""

from orcalike.transport.errors import ProtocolError

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

cimport cython

cdef enum:
    # What may wait at the sequencer for one other member: PACK allows half of the bytes.
    WAITING_MAX = 65536
    WAITING_BYTES_MAX = 134217728


@cython.final
@cython.no_gc
cdef class MemberAcks:
    """The members of a view; there are none until `begin`."""

    def __dealloc__(self):
        free(self.by_position)

    cdef int begin(self, list counters, uint64_t expects) except -1:
        """A view begins: no member has said anything in it yet, and the sequencer holds all."""
        cdef int position
        free(self.by_position)
        self.count = 0
        self.by_position = <Standing*>calloc(max(len(counters), 1), sizeof(Standing))
        if self.by_position is NULL:
            raise MemoryError
        self.count = <int>len(counters)
        for position in range(self.count):
            self.by_position[position].last = counters[position]
            self.by_position[position].expects = expects
        self.by_position[0].holds = <uint64_t>-1
        return 0

    cdef int holders(self, uint64_t seqno) noexcept:
        """How many members hold that packet, and their word counts."""
        cdef int position, found = 0
        for position in range(self.count):
            found += self.by_position[position].holds > seqno and self.by_position[position].whole
        return found

    cdef int make_wait(self, int position, Py_ssize_t size) except -1:
        """A request of a member waits for its number.

        Raises ProtocolError for more than the layers of another member allow it.
        """
        cdef Standing* standing = &self.by_position[position]
        standing.waiting += 1
        standing.waiting_bytes += size
        if position and (standing.waiting > WAITING_MAX or standing.waiting_bytes > WAITING_BYTES_MAX):
            raise ProtocolError(f"{standing.waiting} requests of one member wait for their numbers, "
                                f"with {standing.waiting_bytes} bytes")
        return 0

    cdef void let_go(self, int position, Py_ssize_t size) noexcept:
        """It waits no longer."""
        self.by_position[position].waiting -= 1
        self.by_position[position].waiting_bytes -= size
