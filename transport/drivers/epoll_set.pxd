"""The epoll set of one process: each descriptor in it has a slot, which says whose it is."""

from libc.stdint cimport uint64_t

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        uint64_t u64
    struct epoll_event:
        unsigned int events
        epoll_data_t data
    enum:
        EPOLLIN

cdef enum:
    SLOTS_MAX = 4096


cdef class EpollSet:
    cdef readonly int fd            # the set; -1 once it is closed
    cdef list slots                 # by slot: what the descriptor belongs to, or None
    cdef list free_slots

    cdef void close(self) noexcept
    cpdef int add(self, int fd, object entry, unsigned int events=?) except -1
    cpdef int remove(self, int fd, int slot) except -1
    cdef int take_slot(self, object entry) except -1
    cdef int watch(self, int fd, int slot, unsigned int events, int operation=?) except -1
    cdef void unwatch(self, int fd) noexcept
