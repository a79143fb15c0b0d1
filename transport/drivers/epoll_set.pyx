"""The epoll set of one process: each descriptor in it has a slot, which says whose it is."""

from libc.errno cimport errno
from libc.stdint cimport uint64_t

import os

from orcalike.transport.errors import OrcalikeError

from orcalike.transport.drivers.timers cimport close_once

cdef extern from "<sys/epoll.h>" nogil:
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int operation, int fd, epoll_event* event)
    enum:
        EPOLL_CLOEXEC
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL


cdef class EpollSet:
    """`EpollSet(reserved)`: the first `reserved` slots hold nothing, and are never given away."""

    def __cinit__(self, int reserved):
        self.fd = epoll_create1(EPOLL_CLOEXEC)
        if self.fd < 0:
            raise OSError(errno, os.strerror(errno))
        self.slots = [None] * reserved
        self.free_slots = []

    def __dealloc__(self):
        self.close()

    cdef void close(self) noexcept:
        """Watch nothing any more."""
        close_once(&self.fd)

    cpdef int add(self, int fd, object entry, unsigned int events=EPOLLIN) except -1:
        """The slot of an entry whose descriptor is watched from now on; if that fails, none is taken.

        Raises OrcalikeError if all slots are taken, OSError if the system does not watch it.
        """
        cdef int slot = self.take_slot(entry)
        try:
            self.watch(fd, slot, events)
        except OSError:
            self.slots[slot] = None
            self.free_slots.append(slot)
            raise
        return slot

    cpdef int remove(self, int fd, int slot) except -1:
        """Watch a descriptor no more; its slot is free."""
        self.unwatch(fd)
        self.slots[slot] = None
        self.free_slots.append(slot)
        return 0

    cdef int take_slot(self, object entry) except -1:
        if self.free_slots:
            slot = self.free_slots.pop()
            self.slots[slot] = entry
            return slot
        if len(self.slots) >= SLOTS_MAX:
            raise OrcalikeError(f"more than {SLOTS_MAX} connections")
        self.slots.append(entry)
        return len(self.slots) - 1

    cdef int watch(self, int fd, int slot, unsigned int events,
                   int operation=EPOLL_CTL_ADD) except -1:
        cdef epoll_event event
        event.events = events
        event.data.u64 = slot
        if epoll_ctl(self.fd, operation, fd, &event) < 0:
            raise OSError(errno, os.strerror(errno))
        return 0

    cdef void unwatch(self, int fd) noexcept:
        """Take a descriptor out of the set; closing does not, while another process has it too."""
        cdef epoll_event event
        epoll_ctl(self.fd, EPOLL_CTL_DEL, fd, &event)
