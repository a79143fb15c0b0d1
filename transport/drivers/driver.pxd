"""What an application above a stack may ask of the driver that serves it."""

from cpython.pythread cimport PyThread_type_lock
from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.layers.base cimport Core


cdef int64_t monotonic() noexcept nogil


cdef class Waitable:
    """Something that a thread can wait for."""
    cdef bint finished
    cdef PyThread_type_lock sleeper     # held while a thread sleeps on it; NULL where none does
    cdef Driver roused              # the driver that a thread polls while it waits; or None
    cdef bint waits_for_little      # news of `interest` alone can end the wait, or what is due to this member
    cdef uint64_t interest          # the bit of an object; or 0
    cdef Core counted_at            # the stack that knows that something waits for so little; or None

    cdef int wake(self) noexcept
    cdef bint sleep(self, int64_t until) except -1


cdef class Driver:
    cdef int64_t now                # the time of this input, or of the last one, ns; 0 if it has no clock

    cdef int kick(self) except -1
    cdef int kick_later(self) except -1
    cdef bint try_enter(self, Core stack) except -1
    cdef int leave_after(self, Core passed) except -1
    cdef int catch_up(self, Core stack) except -1
    cdef int begin_wait(self, Waitable waitable) noexcept
    cdef int end_wait(self, Waitable waitable) noexcept
    cdef int begin_await(self, Waitable waitable) except -1
    cdef int rouse(self, Waitable waitable) noexcept
    cdef int look_later(self) noexcept
    cdef bint cast_for(self, Waitable waitable) except -1
    cdef bint wait(self, Waitable waitable, int64_t until) except -1
    cdef int64_t clock(self) noexcept
    cdef bint has_come(self, int64_t moment) noexcept
    cdef int64_t worked(self) noexcept
    cdef int64_t slept(self) noexcept
    cdef int64_t preempted(self) noexcept
    cdef bint is_inside(self) noexcept
