"""System calls of each input, without what glibc does around them for a thread that may be cancelled: none is here.

They set errno as the functions of these names do.
"""

from orcalike.transport.drivers.epoll_set cimport epoll_event

cdef extern from *:
    """
    #include <stddef.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    #ifdef __SANITIZE_ADDRESS__         /* which looks at what the functions of glibc fill and read */
    #include <sys/epoll.h>
    #include <sys/socket.h>
    #define orcalike_recv recv
    #define orcalike_send send
    #define orcalike_epoll_wait(epoll, events, count, timeout) \
        epoll_wait(epoll, (struct epoll_event *)(events), count, timeout)
    #else
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
    #endif
    """
    ssize_t recv "orcalike_recv"(int fd, void* buffer, size_t size, int flags) noexcept nogil
    ssize_t send "orcalike_send"(int fd, const void* buffer, size_t size, int flags) noexcept nogil
    int epoll_wait "orcalike_epoll_wait"(int epoll, epoll_event* events, int count, int timeout) noexcept nogil
