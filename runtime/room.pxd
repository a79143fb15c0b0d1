"""Room for this member's invocations: so many may be under way, and the rest waits."""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.layers.pack cimport Pack

cdef enum:
    SIMPLE_MAX = 512        # bytes of arguments that are written in place
    FAST_MAX = 4096         # of arguments that may go past the layers
    EXTRA = 16              # bytes of a message beside its arguments, at the most
    WARNED = 10000000000    # ns between warnings of a group that is blocked


cdef class Room:
    cdef object sender              # whose room it is: `sender.Sender`, whose module cimports this one
    cdef Pack pack
    cdef Waitable waitable          # threads that wait for room
    cdef list futures               # coroutines that do
    cdef dict limits                # by thread: until when it waits for room, in ns
    cdef dict claims                # by thread, or what a coroutine is known by: the pack whose room it has claimed
    cdef Py_ssize_t refused         # bytes of the largest call that WindowFull has refused since

    cdef bint has(self, Py_ssize_t size) noexcept
    cdef int wait(self, Py_ssize_t size) except -1
    cdef int64_t limit(self, Driver driver, int64_t timeout) except -1
    cdef int wait_until(self, unsigned long me, Py_ssize_t size, int64_t until) except -1
    cdef int give_up_claim(self, object claimer) except -1
    cdef int tell(self) except -1


cdef bint wait_for(Driver driver, Waitable waitable, int64_t until, bint timed) except -1
