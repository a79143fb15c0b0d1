"""Heartbeats: datagrams that say that a process runs."""

cdef struct Table


cdef class Heartbeat:
    cdef Table* table
    cdef list sockets               # what the thread uses; they are closed here

    cdef bint is_mine(self) noexcept
    cdef int start(self) except -1
    cdef int stop(self) noexcept
