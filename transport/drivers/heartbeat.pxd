"""Heartbeats: datagrams that say that a process runs."""

from libc.stdint cimport int64_t

from orcalike.transport.drivers.heartbeat_table cimport Table


cdef class Heartbeat:
    cdef Table* table
    cdef list sockets               # what the thread uses; they are closed here
    cdef public bint beyond         # beats may go beyond the loopback interface

    cdef bint is_mine(self) noexcept
    cdef int watch_running(self, const bint* busy, const int64_t* began, int wakeup) except -1
    cdef int watch_no_more(self, const bint* busy) except -1
    cdef int look_later(self) noexcept
    cdef int start(self) except -1
    cdef int stop(self) noexcept
