"""The driver of a simulated member: its time is the world's, and it never waits."""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.driver cimport Driver


cdef class SimDriver(Driver):
    """Serves the stack of a `sim.Node`, for what stands above the stack."""

    cdef readonly object node
    cdef public int64_t away        # ns of the world's in which this member's thread did not work
    cdef public int64_t asleep      # of these, ns in which nothing of its process did

    def __init__(self, node):
        self.node = node

    cdef int kick(self) except -1:
        """What is in PACK is cast in an event of its own, at this same time."""
        self.node.kick()
        return 0

    cdef int64_t clock(self) noexcept:
        return self.node.world.now

    cdef bint has_come(self, int64_t moment) noexcept:
        return self.node.world.now >= moment

    cdef int64_t worked(self) noexcept:
        return self.node.world.now - self.away

    cdef int64_t slept(self) noexcept:
        return self.asleep

    cdef int64_t preempted(self) noexcept:
        return 0

    def call(self, function, *args):
        """Run one of the stack's inputs: `function(*args, now)`."""
        self.node.call(lambda now: function(*args, now))
