"""A channel: one connected stream socket, cut into frames; never blocks.

A frame's length is checked before a byte of memory is taken for it, and the buffer grows only as
its bytes arrive. Outgoing messages are shared with other channels, and leave many at a time.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EAGAIN, EINTR, ENOBUFS, errno
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, strerror

from orcalike.transport.layers.com cimport FRAME_HEADER, FRAME_MAX
from orcalike.transport.wire.bytes cimport load32
from orcalike.transport.wire.message cimport Message

cdef extern from "<sys/socket.h>" nogil:
    struct iovec:
        void* iov_base
        size_t iov_len
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    ssize_t recv(int fd, void* buffer, size_t size, int flags)
    ssize_t sendmsg(int fd, const msghdr* message, int flags)
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL

cdef extern from "<string.h>" nogil:
    void* memset(void* p, int value, size_t size)

cdef enum:
    READ_SIZE = 65536       # a read takes no more, so that nobody holds the interpreter for long
    VECTOR = 64             # messages in one system call


cdef class Channel:
    """`Channel(fd, link)`; the caller closes the descriptor."""

    def __cinit__(self, int fd, int link):
        self.fd = fd
        self.link = link
        self.address = ""
        self.capacity = READ_SIZE
        self.slots = 16
        self.buffer = <unsigned char*>malloc(self.capacity)
        self.ring = <void**>malloc(self.slots * sizeof(void*))
        if self.buffer is NULL or self.ring is NULL:
            raise MemoryError

    def __dealloc__(self):
        while self.count:
            self.drop_first()
        free(self.ring)
        free(self.buffer)

    cdef int put(self, Message message) except -2:
        """Queue a message."""
        cdef void** ring
        cdef Py_ssize_t i
        if self.count == self.slots:
            ring = <void**>malloc(2 * self.slots * sizeof(void*))
            if ring is NULL:
                raise MemoryError
            for i in range(self.count):
                ring[i] = self.ring[(self.first + i) & (self.slots - 1)]
            free(self.ring)
            self.ring = ring
            self.first = 0
            self.slots *= 2
        Py_INCREF(message)
        self.ring[(self.first + self.count) & (self.slots - 1)] = <void*>message
        self.count += 1
        self.queued += message.size()
        return 0

    cdef void drop_first(self) noexcept:
        Py_DECREF(<object>self.ring[self.first])
        self.first = (self.first + 1) & (self.slots - 1)
        self.count -= 1
        self.written = 0

    cdef int flush(self) except -2:
        """Write what the socket takes: 1 where all is gone, 0 where it must wait, or CLOSED."""
        cdef iovec vector[VECTOR]
        cdef msghdr header
        cdef Message message
        cdef Py_ssize_t n, i, rest
        cdef ssize_t sent
        while self.count:
            n = min(self.count, VECTOR)
            for i in range(n):
                message = <Message>self.ring[(self.first + i) & (self.slots - 1)]
                vector[i].iov_base = message.data()
                vector[i].iov_len = message.size()
            vector[0].iov_base = <char*>vector[0].iov_base + self.written
            vector[0].iov_len -= self.written
            memset(&header, 0, sizeof(header))
            header.msg_iov = vector
            header.msg_iovlen = n
            sent = sendmsg(self.fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent < 0:
                if errno == EAGAIN or errno == ENOBUFS:
                    return 0
                if errno == EINTR:
                    continue
                self.why = strerror(errno).decode()
                return CLOSED
            self.queued -= sent
            while self.count:
                message = <Message>self.ring[self.first]
                rest = message.size() - self.written
                if sent < rest:
                    self.written += sent
                    break
                sent -= rest
                self.drop_first()
        return 1

    cdef int fill(self) except -2:
        """Read once: the number of bytes that came, 0 where there are none now, or CLOSED."""
        cdef ssize_t got
        if self.begin and self.capacity - self.end < READ_SIZE // 2:
            memmove(self.buffer, self.buffer + self.begin, self.end - self.begin)
            self.end -= self.begin
            self.begin = 0
        if self.end == self.capacity:
            self.grow()
        got = recv(self.fd, self.buffer + self.end, min(self.capacity - self.end, READ_SIZE),
                   MSG_DONTWAIT)
        if got > 0:
            self.end += got
            return <int>got
        if got < 0 and (errno == EAGAIN or errno == EINTR):
            return 0
        self.why = "it closed the connection" if got == 0 else strerror(errno).decode()
        return CLOSED

    cdef int grow(self) except -2:
        cdef void* buffer = realloc(self.buffer, 2 * self.capacity)
        if buffer is NULL:
            raise MemoryError
        self.buffer = <unsigned char*>buffer
        self.capacity *= 2
        return 0

    cdef Message next_frame(self):
        """The next whole frame, valid until the next `fill`; None where there is none.

        Sets `why` where the length cannot be believed.
        """
        cdef Py_ssize_t size
        cdef Message frame
        if self.end - self.begin < FRAME_HEADER:
            return None
        size = 4 + <Py_ssize_t>load32(self.buffer + self.begin)
        if size < FRAME_HEADER or size > FRAME_MAX:
            self.why = f"a frame of {size} bytes; {FRAME_HEADER} to {FRAME_MAX} are allowed"
            return None
        if self.end - self.begin < size:
            return None
        frame = Message.view(self.buffer + self.begin, size)
        self.begin += size
        if self.begin == self.end:
            self.begin = self.end = 0   # the bytes stay where they are until the next fill
        return frame
