"""System calls of each input, without what glibc does around them for a thread that may be cancelled: none is here.

They set errno as the functions of these names do.
"""

from orcalike.transport.drivers.epoll_set cimport epoll_event

cdef extern from *:
    """
    #include <stddef.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    static inline ssize_t orcalike_recv(int fd, void *buffer, size_t size, int flags)
    {
        return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
    }

    static inline ssize_t orcalike_send(int fd, const void *buffer, size_t size, int flags)
    {
        return syscall(SYS_sendto, fd, buffer, size, flags, NULL, 0);
    }

    static inline int orcalike_epoll_wait(int epoll, void *events, int count, int timeout)
    {
        return (int)syscall(SYS_epoll_pwait, epoll, events, count, timeout, NULL, 8);
    }
    """
    ssize_t recv "orcalike_recv"(int fd, void* buffer, size_t size, int flags) noexcept nogil
    ssize_t send "orcalike_send"(int fd, const void* buffer, size_t size, int flags) noexcept nogil
    int epoll_wait "orcalike_epoll_wait"(int epoll, epoll_event* events, int count, int timeout) noexcept nogil
