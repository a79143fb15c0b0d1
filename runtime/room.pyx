"""Room for this member's invocations: so many may be under way, and the rest waits.

What is not ordered yet is bounded, in messages and in bytes (`transport.layers.pack`). A thread that
calls when there is no room waits; on an event loop the call is refused (`WindowFull`), and the
coroutine waits (`come`): `with_room` has the call sent then.
"""

from libc.stdint cimport int64_t

from orcalike.runtime import waits
from orcalike.runtime.errors import NestedWrite, WindowFull
from orcalike.runtime.invocation import without_room

from orcalike.runtime.event_loops cimport loop_here, must_not_block, tell
from orcalike.runtime.invocation cimport nanoseconds
from orcalike.runtime.replica cimport thread_slot
from orcalike.transport.drivers.deferral cimport drop_later, hold
from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.layers.pack cimport Pack

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept


class RoomLacking(Exception):
    """The time limit of a call passed while it waited for room."""


cdef class Room:
    """Where calls wait while this member has too much under way."""

    def __init__(self, sender):
        self.sender = sender
        self.futures = []
        self.limits = {}
        self.claims = {}

    cdef int64_t limit(self, Driver driver, int64_t timeout) except -1:
        """This thread waits for room for so long, or as long as it takes; returns until when."""
        cdef unsigned long me = PyThread_get_thread_ident()
        if timeout == NEVER:
            self.limits.pop(me, None)
            return NEVER
        self.limits[me] = driver.clock() + timeout
        return self.limits[me]

    cdef bint has(self, Py_ssize_t size) noexcept:
        """Whether this member may have so many bytes more under way."""
        return (self.pack.has_room_for(size + EXTRA) if size > SIMPLE_MAX
                else not self.pack.is_full())

    cdef int wait(self, Py_ssize_t size) except -1:
        """This member has too much under way: wait, or raise on an event loop.

        What needs more room than a small message keeps it free from these meanwhile: else it would
        wait for ever behind a stream of them.
        """
        cdef unsigned long me = PyThread_get_thread_ident()
        cdef object limit
        if must_not_block():
            self.refused = max(self.refused, size)
            raise WindowFull("too many invocations are not ordered yet: await group.drain()")
        # What this thread was about to send when a signal's handler came waits behind what that calls, which has no limit of it.
        limit = self.limits.pop(me, None)
        self.give_up_claim(me)
        while not self.has(size):  # looked at again, since leaving lets other threads run
            hold()
            try:
                waits.enter("room", "", "nowait")
                self.wait_until(me, size, NEVER if limit is None else limit)
            finally:
                self.give_up_claim(me)
                waits.leave()
                drop_later()
        if limit is not None:
            self.limits[me] = limit
        return 0

    cdef int wait_until(self, unsigned long me, Py_ssize_t size, int64_t until) except -1:
        """Have the thread wait for so many bytes, until then."""
        cdef Driver driver = self.sender.driver
        cdef Waitable waitable
        cdef int64_t now
        while not self.has(size):
            self.sender.check_open()
            if size > SIMPLE_MAX and me not in self.claims:
                self.claims[me] = self.pack
                self.pack.claim()
            waitable = self.waitable
            if waitable is None:
                self.waitable = Waitable()
                continue    # to make it may have let others run, which made room
            driver.kick()   # which may make room, too, and wakes `waitable` then
            if not self.has(size) and (thread_slot()[0] is not NULL or driver.is_inside()):
                raise NestedWrite(
                    "too many invocations are not ordered yet, and to wait for room in the midst of an operation "
                    "or of orcalike, as by a finalizer, would be for ever: have a thread call it")
            now = driver.clock()
            if now >= until:
                raise RoomLacking
            if (not wait_for(driver, waitable, min(until, now + WARNED), until != NEVER)
                    and until > now + <int64_t>WARNED):
                self.sender.runtime.long_waits.log_full()
        return 0

    cdef int give_up_claim(self, object claimer) except -1:
        """What is small may go on, if that one has claimed the room; it waits for no input if nothing is under way."""
        cdef Pack pack = self.claims.pop(claimer, None)     # the member may have joined again, with another one
        if pack is not None:
            pack.unclaim()
            self.tell()
        return 0

    async def come(self):
        """Wait until this member may invoke more: what was refused before, too."""
        cdef Py_ssize_t size = self.refused
        cdef Driver driver = self.sender.driver
        cdef Waitable waiting = Waitable()
        cdef object me = object()
        self.refused = 0
        if size > SIMPLE_MAX:
            self.claims[me] = self.pack
            self.pack.claim()
        try:
            while not self.has(size):
                self.sender.check_open()
                future = loop_here().create_future()
                self.futures.append(future)
                driver.kick()
                # Another thread may have made room, or ended the group, before `future` was in the list.
                if not self.has(size) and self.sender.failure is None:
                    try:
                        driver.begin_await(waiting)     # the order is to be looked at, which may bring what is under way
                        await future
                    finally:
                        driver.end_wait(waiting)
        finally:
            self.give_up_claim(me)

    def start(self, what, seconds, start):
        """`start` a call in this thread, which waits for room for so long, or as long as it takes; returns its invocation."""
        cdef Driver driver = self.sender.driver
        self.limit(driver, nanoseconds(seconds))
        try:
            return start()
        except RoomLacking:
            raise without_room(what) from None
        finally:
            self.limit(driver, NEVER)

    cdef int tell(self) except -1:
        """There is room again: notify the calls that wait for it."""
        cdef Waitable waitable = self.waitable
        if not self.pack.has_ample_room() and self.sender.failure is None:
            return 0
        if waitable is not None:
            self.waitable = None
            waitable.wake()
        futures, self.futures = self.futures, []
        for future in futures:
            tell(future)
        return 0


cdef bint wait_for(Driver driver, Waitable waitable, int64_t until, bint timed) except -1:
    """Have this thread wait for an outcome, until then.

    One with a time limit does not receive: it would run the operations of others meanwhile, and not
    come back if one of them does not end.
    """
    if timed:
        return driver.wait_asleep(waitable, until)
    return driver.wait(waitable, until)
