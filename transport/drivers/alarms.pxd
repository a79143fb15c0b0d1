"""Alarms: stacks whose members wake each other through shared memory."""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.driver cimport Waitable
from orcalike.transport.drivers.links cimport Links
from orcalike.transport.drivers.lock cimport Lock
from orcalike.transport.stack cimport Stack


cdef class Alarms(Links):
    cdef Lock lock                  # held while something runs in a stack
    cdef unsigned long inside       # the thread that has it; 0 where none has
    cdef bint shares_memory         # what a stack casts is ordered at once, by the thread that casts
    cdef bint has_poller            # a thread of its own, or an event loop, polls whenever there is something

    cdef public bint stopped
    cdef unsigned long server       # the pump's own thread, or 0
    cdef Waitable dozer             # what a thread waits for that dozes; or None
    cdef unsigned long dozing_thread
    cdef public int64_t doze_most   # ns, until it looks again: one that was stopped before it woke others does so late
    cdef Stack dozes_on             # the stack on whose futex one has dozed last

    cdef int handle_other(self, object entry) except -1
    cdef int leave(self, Stack passed) except -1
    cdef int call_back(self) except -1
    cdef int share_memory(self, Stack stack) except -1
    cdef int count_waiting(self, int more) noexcept
    cdef bint may_doze(self)
    cdef int doze_for(self, Waitable waitable, int64_t until) except -1
    cdef int look_for(self, Waitable waitable) except -1
    cdef int end_doze(self) noexcept
    cdef int look_into_order(self) except -1
    cdef int ends_wait(self, Waitable waitable) noexcept
    cdef bint wait_in_role(self, Waitable waitable, int64_t until) except -1
    cdef bint sleep_counted(self, Waitable waitable, int64_t until) except -1
