"""A channel under a key: a handshake, then sealed records (S4, S5, S6).

A record is its length in 4 bytes and what AES-256-GCM makes of at most 64 KiB of frames, with a tag.
A flush seals what is queued in as few records as it fits: one for many frames. Nonces count the
records of a direction, so one that is changed, repeated, left out or moved does not open.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, strerror

from orcalike.transport.errors import OrcalikeError

from orcalike.transport.drivers.channel cimport CLOSED, Channel, iovec, send_along
from orcalike.transport.drivers.record_cipher cimport TAG, RecordCipher
from orcalike.transport.drivers.system_calls cimport recv, send
from orcalike.transport.wire.bytes cimport load32, store32
from orcalike.transport.wire.message cimport Message

cdef extern from "<sys/socket.h>" nogil:
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL

cdef enum:
    HEAD = 4
    PLAIN_MAX = 65536
    RECORD_MAX = HEAD + PLAIN_MAX + TAG
    RAW_SIZE = 2 * RECORD_MAX   # so that there is room beside a part of a record
    HANDSHAKE_MAX = 512         # bytes of an end that has not proved the key


cdef class SealedChannel(Channel):
    """Made by `make_channel`; its stack is notified of it when the handshake is over."""

    def __cinit__(self, int fd, int process=-1, int files=-1):
        self.shaking = True
        self.plain = <unsigned char*>malloc(PLAIN_MAX)
        self.record = <unsigned char*>malloc(RECORD_MAX)
        self.raw = <unsigned char*>malloc(RAW_SIZE)
        if self.plain is NULL or self.record is NULL or self.raw is NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.plain)
        free(self.record)
        free(self.raw)

    # The handshake.

    cdef int start(self) except -1:
        """This end has connected: its message goes first."""
        self.say(self.handshake.opening())
        return 0

    cdef bint shake(self) except -1:
        """Take what came of the handshake; whether it is over now. Raises AuthenticationError."""
        cdef Py_ssize_t size = self.raw_end - self.raw_begin
        cdef bytes begun = self.raw[self.raw_begin:self.raw_begin + min(size, <Py_ssize_t>self.handshake.wanted)]
        self.handshake.check_begun(begun)
        if len(begun) < self.handshake.wanted:
            return False
        self.raw_begin += len(begun)
        answer = self.handshake.receive(begun)
        if answer:
            self.say(answer)
        self.sends, self.comes = map(RecordCipher, self.handshake.keys())
        self.handshake = None
        self.shaking = False
        self.open_records()
        return True

    cdef int say(self, bytes message) except -1:
        """A message of the handshake goes with the next flush; nothing else is under way."""
        memcpy(self.record, <const unsigned char*>message, len(message))
        self.gone, self.record_end = 0, len(message)
        return 0

    # Records.

    cdef bint write_whole(self, Message message) noexcept:
        return False                    # it goes in a record

    cdef int flush(self) except -2:
        cdef ssize_t sent
        cdef int gone
        while True:
            if self.gone == self.record_end:
                self.queued -= self.sealed
                self.sealed = self.gone = self.record_end = 0
                if self.shaking or not self.messages.count:
                    return 1
                self.seal()
            if self.gives[0] < 0:
                sent = send(self.fd, self.record + self.gone, self.record_end - self.gone,
                            MSG_DONTWAIT | MSG_NOSIGNAL)
            else:
                sent = self.send_first()
            if sent >= 0:
                self.has_gone()
                self.gone += sent
            else:
                gone = self.not_written()
                if gone != 1:
                    return gone

    cdef ssize_t send_first(self) noexcept:
        """Write a record, and the descriptors that go along."""
        cdef iovec vector
        vector.iov_base = self.record + self.gone
        vector.iov_len = self.record_end - self.gone
        return send_along(self.fd, &vector, 1, self.going())

    cdef int seal(self) except -1:
        """Make a record of what is queued, as far as it fits one."""
        cdef Message message = <Message>self.messages.at(0)
        cdef Py_ssize_t size = min(message.size() - self.written, PLAIN_MAX)
        if self.messages.count == 1 or size == PLAIN_MAX:
            self.sends.seal(message.data() + self.written, size, self.record + HEAD)
            self.go_on(message, size)
        else:
            size = self.gather()
            self.sends.seal(self.plain, size, self.record + HEAD)
        store32(self.record, <unsigned int>(size + TAG))
        self.sealed, self.record_end = size, HEAD + size + TAG
        return 0

    cdef Py_ssize_t gather(self) except -1:
        """Copy what is queued, as far as it fits one record; the number of bytes."""
        cdef Message message
        cdef Py_ssize_t part, size = 0
        while self.messages.count and size < PLAIN_MAX:
            message = <Message>self.messages.at(0)
            part = min(message.size() - self.written, PLAIN_MAX - size)
            memcpy(self.plain + size, message.data() + self.written, part)
            size += part
            self.go_on(message, part)
        return size

    cdef int go_on(self, Message message, Py_ssize_t size) except -1:
        """So many bytes more of the first message are in a record."""
        self.written += size
        if self.written == message.size():
            self.messages.drop()
            self.written = 0
        return 0

    cdef int fill(self) except -2:
        cdef ssize_t got
        cdef Py_ssize_t room
        if self.raw_begin:
            self.raw_end -= self.raw_begin
            memmove(self.raw, self.raw + self.raw_begin, self.raw_end)
            self.raw_begin = 0
        room = (HANDSHAKE_MAX if self.shaking else RAW_SIZE) - self.raw_end
        if self.has_come:
            got = recv(self.fd, self.raw + self.raw_end, room, MSG_DONTWAIT)
        else:
            got = self.read_passed(self.raw + self.raw_end, room)
        if got > 0:
            self.raw_end += got
            if not self.shaking:
                self.open_records()
            return <int>got
        if got < 0 and (errno == EAGAIN or errno == EINTR):
            return 0
        self.why = "it closed the connection" if got == 0 else strerror(errno).decode()
        return CLOSED

    cdef int open_records(self) except -1:
        """Open the records that are here whole; sets `why` at one that cannot be."""
        cdef Py_ssize_t size
        while self.why is None and self.raw_end - self.raw_begin >= HEAD:
            size = load32(self.raw + self.raw_begin)
            if size <= TAG or size > PLAIN_MAX + TAG:
                self.why = f"a record of {size} bytes; {TAG + 1} to {PLAIN_MAX + TAG} are allowed"
                break
            if self.raw_end - self.raw_begin < HEAD + size:
                break
            self.make_room(size - TAG)
            if not self.comes.open(self.raw + self.raw_begin + HEAD, size, self.buffer + self.end):
                self.why = "a record was changed, repeated or left out, or is of another key"
                break
            self.raw_begin += HEAD + size
            self.end += size - TAG
        return 0


cdef Channel make_channel(int fd, object process, object keys, bint connects):
    """A channel that passes an OwnProcess, and is under a ring of keys; None for either. Raises OrcalikeError if that cannot be."""
    cdef SealedChannel sealed
    passed = (-1, -1) if process is None else (process.fd, process.files)
    if keys is None:
        return Channel(fd, *passed)
    # Not at the top: it takes long, and a group on Unix sockets has no keys.
    try:
        from orcalike.transport.drivers.handshake import Handshake
    except ImportError as error:
        raise OrcalikeError(f"no handshake can be made: {error}") from None
    sealed = SealedChannel(fd, *passed)
    sealed.handshake = Handshake(keys, connects=connects)
    return sealed
