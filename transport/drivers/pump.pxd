"""The pump: moves frames between stacks and sockets."""

from cpython.pythread cimport PyThread_type_lock
from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.driver cimport Driver, Waitable
from orcalike.transport.stack cimport Stack

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        uint64_t u64
    struct epoll_event:
        unsigned int events
        epoll_data_t data


cdef class Pump(Driver):
    cdef int epoll                  # all sockets, and the alarm
    cdef int outer                  # what the thread of its own waits on; -1 without one
    cdef int alarm                  # an eventfd that wakes whoever polls
    cdef list slots                 # by slot: a Channel, a listening socket, or None
    cdef list free_slots
    cdef list stacks
    cdef list dirty                 # channels with messages that were queued just now
    cdef list callbacks             # of descriptors that are watched for others, and have come
    cdef dict sockets               # fd -> the socket that owns it
    cdef PyThread_type_lock lock    # held while something runs in a stack
    cdef bint polled                # somebody sleeps in, or handles, the epoll set
    cdef bint asleep                # whoever polls sleeps
    cdef bint kicked                # PACK has something to cast
    cdef int64_t thread_sleeps_until    # when the pump's own thread does
    cdef int64_t sleeps_until       # when whoever polls wakes up by itself
    cdef public bint stopped
    cdef readonly object failure    # the exception that ended it
    cdef public object on_failure   # called with it
    cdef readonly object log        # called with (level, text)
    cdef public object stack_for    # group name -> Stack or None, for greetings
    cdef public object rearm        # an event loop's: called with the new deadline
    cdef int64_t armed

    cdef int enter(self) except -1
    cdef int leave(self) except -1
    cdef int poll(self, int64_t until) except -1
    cdef int wind(self) except -1
    cdef int64_t next_deadline(self)
    cdef int handle_events(self, epoll_event* events, int count) except -1
    cdef int call_back(self) except -1
    cdef int show(self, unsigned int events, int operation) except -1
    cdef int slot(self, object entry) except -1
    cdef int watch(self, int fd, int slot, unsigned int events, int operation=?) except -1
    cdef Channel open(self, object sock, unsigned int events)
    cdef accept(self, object listener)
    cdef connect(self, Stack stack, str address)
    cdef close(self, Channel channel, str why)
    cdef int handle_channel(self, Channel channel, unsigned int events) except -1
    cdef int connected(self, Channel channel) except -1
    cdef greeted(self, Channel channel, bytes frame)
    cdef refuse(self, Channel channel, str why)
    cdef int emit(self) except -1
    cdef int emit_stack(self, Stack stack) except -1
    cdef int follow(self, Stack stack) except -1
    cdef int flush(self, Channel channel) except -1
    cdef fail(self, object error)
