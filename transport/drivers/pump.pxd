"""The pump: drives stacks and their links."""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.alarms cimport Alarms
from orcalike.transport.drivers.epoll_set cimport epoll_event
from orcalike.transport.stack cimport Stack


cdef class Pump(Alarms):
    cdef int outer                  # what the thread of its own waits on; -1 without one
    cdef int alarm                  # an eventfd that wakes the thread that polls
    cdef bint polled                # a thread sleeps in, or handles, the epoll set
    cdef bint asleep                # that thread sleeps
    cdef bint kicked                # PACK has something to cast
    cdef bint rung                  # `kick_later` has woken what polls, which has not looked since
    cdef int timer                  # a timerfd that wakes the thread that polls for a deadline
    cdef int64_t timer_at           # when; NEVER if it has expired
    cdef int64_t due                # the stacks' next deadline when the last input was over
    cdef int64_t waits_until        # when the thread that waits in a call gives up; or NEVER
    cdef unsigned long poller       # the thread that has the role, where `polled` is set
    cdef readonly object thread     # the same, a threading.Thread; or None
    cdef Stack behind               # the stack that a read has found so last
    cdef int away                   # threads whose place another one has taken, until they are back
    cdef readonly object failure    # the exception that ended it
    cdef public object on_failure   # called with it

    cdef int take_place(self) noexcept
    cdef int come_out(self) except -1
    cdef int resume_input(self) except -1
    cdef int give_up_role(self) except -1
    cdef int end_role(self) except -1
    cdef int serve(self) except -1
    cdef int wait_for_lock(self) except -1
    cdef bint has_more_than(self, Stack passed) except -1
    cdef int send_out(self) except -1
    cdef int let_in(self) except -1
    cdef int poll_once(self, bint sleeps) except -1
    cdef int poll(self, bint sleeps=?) except -1
    cdef int handle_all(self, epoll_event* events, int count) except -1
    cdef int handle_events(self, epoll_event* events, int count) except -1
    cdef int show(self, unsigned int events, int operation) except -1
    cdef fail(self, object error)
