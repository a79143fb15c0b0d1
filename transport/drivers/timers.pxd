"""Descriptors of the kernel that can be watched beside sockets: counters, and timers; and how each is closed."""

from libc.stdint cimport int64_t

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int value, int flags)
    enum:
        EFD_CLOEXEC
        EFD_NONBLOCK

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef extern from "<time.h>" nogil:
    enum:
        CLOCK_MONOTONIC
    struct timespec:
        long tv_sec
        long tv_nsec

cdef extern from "<sys/timerfd.h>" nogil:
    struct itimerspec:
        timespec it_interval
        timespec it_value
    int timerfd_create(int clock, int flags)
    int timerfd_settime(int fd, int flags, const itimerspec* new, itimerspec* old)
    enum:
        TFD_CLOEXEC
        TFD_NONBLOCK
        TFD_TIMER_ABSTIME


cdef inline int new_counter() noexcept:
    """Readable once it was written to; -1 and errno if the system has none."""
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)


cdef inline int new_timer() noexcept:
    """Readable once the time has come that it is set to; -1 and errno if the system has none."""
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)


cdef inline void close_once(int* fd) noexcept:
    """Close a descriptor if there is one, and forget its number, which another file may get."""
    if fd[0] >= 0:
        close(fd[0])                    # not Python's, which may be gone when the process ends
    fd[0] = -1


cdef inline void close_three(int* one, int* other, int* third) noexcept:
    """The same with three."""
    close_once(one)
    close_once(other)
    close_once(third)


cdef inline int set_timer(int timer, int64_t time) noexcept:
    """Set it to this time alone, ns of the monotonic clock."""
    cdef itimerspec at
    cdef int64_t then = max(time, <int64_t>1)   # 0 is no time at all
    at.it_interval.tv_sec = at.it_interval.tv_nsec = 0
    at.it_value.tv_sec = then // 1000000000
    at.it_value.tv_nsec = then % 1000000000
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL)
