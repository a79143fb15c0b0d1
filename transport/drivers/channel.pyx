"""A channel: one connected stream socket, cut into frames; never blocks.

A frame's length is checked before a byte of memory is taken for it, and the buffer grows only as
its bytes arrive. Outgoing messages are shared with other channels, and leave many at a time.

On a Unix socket each end passes two descriptors along with its first byte: a pidfd of its process, and the
directory of its open files, by which others map the memory that it offers. The kernel adds which process that is,
and of which user (SO_PASSCRED). While too many descriptors of the user are under way (ETOOMANYREFS) it takes none: bytes
go without, and the first that can take them along do.
"""

from cpython.object cimport PyObject
from libc.errno cimport EAGAIN, EINTR, ENOBUFS, ETOOMANYREFS, errno
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove, strerror

from orcalike.transport.drivers.system_calls cimport recv, send
from orcalike.transport.layers.com cimport FRAME_HEADER, FRAME_MAX
from orcalike.transport.wire.bytes cimport load32
from orcalike.transport.wire.message cimport Message, Py_REFCNT
from orcalike.transport.wire.ring cimport Ring

cdef extern from "<sys/socket.h>" nogil:
    struct cmsghdr:
        size_t cmsg_len
        int cmsg_level
        int cmsg_type
    cmsghdr* CMSG_FIRSTHDR(msghdr* message)
    cmsghdr* CMSG_NXTHDR(msghdr* message, cmsghdr* control)
    unsigned char* CMSG_DATA(cmsghdr* control)
    size_t CMSG_LEN(size_t size)
    size_t CMSG_SPACE(size_t size)
    int setsockopt(int fd, int level, int name, const void* value, unsigned int size)
    ssize_t recvmsg(int fd, msghdr* message, int flags)
    ssize_t sendmsg(int fd, const msghdr* message, int flags)
    enum:
        MSG_CMSG_CLOEXEC
        MSG_CTRUNC
        MSG_DONTWAIT
        MSG_NOSIGNAL
        MSG_PEEK
        SCM_RIGHTS
        SOL_SOCKET
        SO_PASSCRED

cdef extern from *:
    """
    #define ORCALIKE_SCM_CREDENTIALS 2  /* SCM_CREDENTIALS and ucred: declared for _GNU_SOURCE alone */
    struct orcalike_ucred { int pid; unsigned int uid, gid; };
    """
    struct ucred "orcalike_ucred":
        int pid
        unsigned int uid
        unsigned int gid
    int SCM_CREDENTIALS "ORCALIKE_SCM_CREDENTIALS"

cdef extern from "<linux/magic.h>" nogil:
    enum:
        PROC_SUPER_MAGIC

cdef extern from "<sys/vfs.h>" nogil:
    struct statfs_t "statfs":
        long f_type
    int fstatfs(int fd, statfs_t* found)

cdef extern from "<unistd.h>" nogil:
    int close(int fd)

cdef extern from "<fcntl.h>" nogil:
    int fcntl(int fd, int command, ...)
    enum:
        F_DUPFD_CLOEXEC

cdef extern from "<string.h>" nogil:
    void* memset(void* p, int value, size_t size)

cdef enum:
    READ_SIZE = 65536       # a read takes no more, so that none holds the interpreter for long
    VECTOR = 64             # messages in one system call
    CONTROL = 8             # words, enough for two descriptors
    PASSED = 2              # descriptors that come along, once
    PEEKS_MAX = 3           # looks at what came, while descriptors that do not come could be had


cdef class Channel:
    """`Channel(fd, process, files)`; the caller closes the descriptors.

    The last two go along with the first byte that can, -1 for none: of this process a pidfd, and the directory of its
    open files. The peer's, which came along, are closed here unless `take_passed` takes them.
    """

    def __cinit__(self, int fd, int process=-1, int files=-1):
        self.gives[0], self.gives[1] = process, files
        self.process = self.files = self.uid = -1
        self.fd = fd
        self.link = -1
        self.address = ""
        self.capacity = READ_SIZE
        self.messages = Ring()
        self.buffer = <unsigned char*>malloc(self.capacity)
        if self.buffer is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.buffer)
        self.forget_passed()

    cdef tuple take_passed(self):
        """(process, files) that came; the caller closes them."""
        cdef tuple passed = (self.process, self.files)
        self.process = self.files = -1
        return passed

    cdef int put(self, Message message) except -2:
        """Queue a message."""
        self.messages.put(message)
        self.queued += message.size()
        return 0

    cdef bint write_whole(self, Message message) noexcept:
        """Write a message that nothing waits before; False if it is to be queued, of which a part may be gone."""
        cdef ssize_t sent
        if self.waits_for_room or self.messages.count or self.gives[0] >= 0:
            return False
        sent = send(self.fd, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
        if sent == message.size():
            return True
        if sent > 0:
            self.written = sent
            self.queued -= sent
        return False

    cdef int flush(self) except -2:
        """Write what the socket takes: 1 where all is gone, 0 where it must wait, or CLOSED."""
        cdef Message message
        cdef Py_ssize_t rest
        cdef ssize_t sent
        cdef int gone
        while self.messages.count:
            if self.messages.count == 1 and self.gives[0] < 0:
                message = <Message>self.messages.at(0)
                sent = send(self.fd, message.data() + self.written, message.size() - self.written,
                            MSG_DONTWAIT | MSG_NOSIGNAL)
            else:
                sent = self.send_many()
            if sent < 0:
                gone = self.not_written()
                if gone == 1:
                    continue
                return gone
            self.has_gone()
            self.queued -= sent
            while self.messages.count:
                rest = (<Message>self.messages.at(0)).size() - self.written
                if sent < rest:
                    self.written += sent
                    break
                sent -= rest
                self.messages.drop()
                self.written = 0
        return 1

    cdef int not_written(self) except -2:
        """What comes of a write that has failed just now: 1 to try again, 0 to wait, or CLOSED."""
        if errno == EAGAIN or errno == ENOBUFS:
            return 0
        if errno == EINTR:
            return 1
        if errno == ETOOMANYREFS and self.gives[0] >= 0:
            self.too_many = True        # these bytes go without
            return 1
        self.why = strerror(errno).decode()
        return CLOSED

    cdef void has_gone(self) noexcept:
        """Bytes were written, and the descriptors along with them, if there were not too many."""
        if not self.too_many:
            self.gives[0] = -1
        self.too_many = False

    cdef int* going(self) noexcept:
        """The descriptors that go along with the next byte; NULL for none."""
        return NULL if self.too_many or self.gives[0] < 0 else self.gives

    cdef ssize_t send_many(self) noexcept:
        """Write what is queued, and the descriptors that go along."""
        cdef iovec vector[VECTOR]
        cdef Message message
        cdef Py_ssize_t i, begin = self.written, count = min(self.messages.count, <Py_ssize_t>VECTOR)
        for i in range(count):
            message = <Message>self.messages.at(i)
            vector[i].iov_base = message.data() + begin
            vector[i].iov_len = message.size() - begin
            begin = 0
        return send_along(self.fd, vector, count, self.going())

    cdef int fill(self) except -2:
        """Read once: the number of bytes that came, 0 where there are none now, or CLOSED."""
        cdef ssize_t got
        if self.end == self.capacity or self.begin and self.capacity - self.end < READ_SIZE // 2:
            self.make_room(1)
        if self.has_come:
            got = recv(self.fd, self.buffer + self.end, min(self.capacity - self.end, READ_SIZE),
                       MSG_DONTWAIT)
        else:
            got = self.read_passed(self.buffer + self.end, min(self.capacity - self.end, READ_SIZE))
        if got > 0:
            self.end += got
            return <int>got
        if got < 0 and (errno == EAGAIN or errno == EINTR):
            return 0
        self.why = "it closed the connection" if got == 0 else strerror(errno).decode()
        return CLOSED

    cdef ssize_t read_passed(self, void* room, Py_ssize_t size) noexcept:
        """Read with what comes along, until it has come; the kernel keeps back any more descriptors than two.

        It leaves out those for which this process has no room, too, and tells that from nothing else, as a security
        module that denies them. So the bytes are looked at, and read once it is known: while there is no room nothing
        is, and EMFILE is the error. If other bytes have come before, these are read all the same.
        """
        cdef size_t control[CONTROL]
        cdef iovec vector
        cdef msghdr header
        cdef ssize_t got
        cdef int passed, looks
        cdef bint first = self.uid < 0
        vector.iov_base = room
        vector.iov_len = size
        for looks in range(PEEKS_MAX):
            memset(&header, 0, sizeof(header))
            header.msg_iov = &vector
            header.msg_iovlen = 1
            header.msg_control = control
            header.msg_controllen = CMSG_SPACE(sizeof(ucred)) + CMSG_LEN(PASSED * sizeof(int))
            got = recvmsg(self.fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC)
            if got <= 0:
                return got
            self.forget_passed()
            passed = self.take_control(&header)
            if not header.msg_flags & MSG_CTRUNC or passed >= PASSED:
                break
            if not has_room(self.fd, PASSED - passed):
                if first:
                    return -1
                break
        self.has_come = self.uid < 0 or self.process >= 0   # not by TCP, ever; and by a Unix socket perhaps later
        return recv(self.fd, room, got, MSG_DONTWAIT)

    cdef void forget_passed(self) noexcept:
        """Close the descriptors that came."""
        cdef int fd
        for fd in (self.process, self.files):
            if fd >= 0:
                close(fd)
        self.process = self.files = -1

    cdef int take_control(self, msghdr* header) noexcept:
        """Take what came along. Returns how many descriptors did."""
        cdef cmsghdr* control = CMSG_FIRSTHDR(header)
        cdef ucred sender
        cdef int fd, passed = 0, off = 0
        cdef size_t i, count
        while control is not NULL:
            if control.cmsg_level == SOL_SOCKET and control.cmsg_type == SCM_CREDENTIALS:
                memcpy(&sender, CMSG_DATA(control), sizeof(ucred))
                self.pid, self.uid = sender.pid, <int>sender.uid
                setsockopt(self.fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof(int))
            elif control.cmsg_level == SOL_SOCKET and control.cmsg_type == SCM_RIGHTS:
                count = (control.cmsg_len - CMSG_LEN(0)) // sizeof(int)
                passed += <int>count
                for i in range(count):
                    memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int))
                    if self.process < 0:
                        self.process = fd
                    elif self.files < 0 and is_of_proc(fd):
                        self.files = fd
                    else:
                        close(fd)
            control = CMSG_NXTHDR(header, control)
        return passed

    cdef int make_room(self, Py_ssize_t size) except -1:
        """Have room for so many bytes more; frames that were taken are not valid any longer."""
        cdef Py_ssize_t capacity = self.capacity
        cdef void* buffer
        if self.begin:
            self.end -= self.begin
            memmove(self.buffer, self.buffer + self.begin, self.end)
            self.begin = 0
        while capacity - self.end < size:
            capacity *= 2
        if capacity > self.capacity:
            buffer = realloc(self.buffer, capacity)
            if buffer is NULL:
                raise MemoryError
            self.buffer, self.capacity = <unsigned char*>buffer, capacity
        return 0

    cdef Message next_frame(self):
        """The next whole frame, valid until the next `fill`; None if there is none.

        Sets `why` where the length cannot be believed.
        """
        cdef Py_ssize_t size
        if self.end - self.begin < FRAME_HEADER:
            return None
        size = 4 + <Py_ssize_t>load32(self.buffer + self.begin)
        if size < FRAME_HEADER or size > FRAME_MAX:
            self.why = f"a frame of {size} bytes; {FRAME_HEADER} to {FRAME_MAX} are allowed"
            return None
        if self.end - self.begin < size:
            return None
        self.frame, self.spare = self.spare, self.frame     # what stands above may still hold the last one
        if self.frame is not None and Py_REFCNT(<PyObject*>self.frame) == 1:
            self.frame.view_again(self.buffer + self.begin, size)
        else:
            self.frame = Message.view(self.buffer + self.begin, size)
        self.begin += size
        if self.begin == self.end:
            self.begin = self.end = 0   # the bytes stay where they are until the next fill
        return self.frame


cdef bint is_of_proc(int fd) noexcept:
    """Whether the kernel itself answers for what is opened there: no other file system may keep it waiting."""
    cdef statfs_t found
    return fstatfs(fd, &found) == 0 and found.f_type == PROC_SUPER_MAGIC


cdef bint has_room(int fd, int count) noexcept:
    """Whether this process can have so many descriptors more, a few; `errno` says why not."""
    cdef int first = fcntl(fd, F_DUPFD_CLOEXEC, 0)
    cdef bint found = first >= 0 and (count == 1 or has_room(fd, count - 1))
    if first >= 0:
        close(first)                # which leaves errno as it is
    return found


cdef ssize_t send_along(int fd, iovec* vector, Py_ssize_t count, int* gives) noexcept:
    """Write, and have these descriptors go along with the first byte if it is not NULL."""
    cdef msghdr header
    cdef size_t control[CONTROL]
    memset(&header, 0, sizeof(header))
    header.msg_iov = vector
    header.msg_iovlen = count
    if gives is not NULL:
        attach(&header, control, gives)
    return sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL)


cdef void attach(msghdr* header, size_t* control, int* gives) noexcept:
    """Have one descriptor go along with the message, or two."""
    cdef cmsghdr* first
    cdef size_t size = sizeof(int) if gives[1] < 0 else 2 * sizeof(int)
    memset(control, 0, CONTROL * sizeof(size_t))
    header.msg_control = control
    header.msg_controllen = CMSG_LEN(size)
    first = CMSG_FIRSTHDR(header)
    first.cmsg_level = SOL_SOCKET
    first.cmsg_type = SCM_RIGHTS
    first.cmsg_len = CMSG_LEN(size)
    memcpy(CMSG_DATA(first), gives, size)
