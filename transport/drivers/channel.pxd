"""A channel: one connected socket, cut into frames."""

from orcalike.transport.stack cimport Stack
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring


cdef extern from "<sys/socket.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
        void* msg_control
        size_t msg_controllen
        int msg_flags


cdef enum:
    CLOSED = -1             # what `receive` and `flush` return when the channel is at its end


cdef class Channel:
    cdef readonly int fd
    cdef readonly int link          # its slot in the epoll set, by which its stack knows it; -1 before it has one
    cdef public Stack stack         # whose frames these are; None before the greeting
    cdef public str address         # the address that it was made to, or ""
    cdef public bint connecting
    cdef public bint waits_for_room # EPOLLOUT is asked for
    cdef public bint severed        # nothing comes or goes for now: a partition
    cdef readonly bint shaking      # its handshake under a key is not over
    cdef bint dirty                 # something was queued since the last flush
    cdef readonly str why           # it is at its end because
    cdef int gives[2]               # the descriptors that the next byte takes along: process, files; or -1
    cdef bint too_many              # it does not: the kernel has too many under way
    cdef readonly int process       # a pidfd of the peer's process, which came along, or -1
    cdef readonly int files         # the directory of its open files, as /proc has it, or -1
    cdef readonly int pid           # of the process that sent the first byte, by the kernel; 0 if unknown
    cdef readonly int uid           # and its user; -1 if unknown
    cdef public bint claimed        # its greeting has been compared with that
    cdef bint has_come              # what comes along has, or nothing will
    # Incoming bytes that are not a whole frame yet.
    cdef unsigned char* buffer
    cdef Py_ssize_t begin, end, capacity
    cdef Message frame              # the last one
    cdef Message spare              # the one before, which is the next one if nothing holds it; or None
    cdef Ring messages              # what is to be sent
    cdef Py_ssize_t written         # bytes of the first that are gone already
    cdef readonly Py_ssize_t queued # bytes

    cdef tuple take_passed(self)
    cdef ssize_t read_passed(self, void* room, Py_ssize_t size) noexcept
    cdef void forget_passed(self) noexcept
    cdef int take_control(self, msghdr* header) noexcept
    cdef int put(self, Message message) except -2
    cdef bint write_whole(self, Message message) noexcept
    cdef int flush(self) except -2
    cdef int not_written(self) except -2
    cdef void has_gone(self) noexcept
    cdef int* going(self) noexcept
    cdef ssize_t send_many(self) noexcept
    cdef int fill(self) except -2
    cdef int make_room(self, Py_ssize_t size) except -1
    cdef Message next_frame(self)


cdef bint has_room(int fd, int count) noexcept
cdef ssize_t send_along(int fd, iovec* vector, Py_ssize_t count, int* gives) noexcept
