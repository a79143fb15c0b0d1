"""A channel under a key: a handshake, then sealed records."""

from orcalike.transport.drivers.channel cimport Channel
from orcalike.transport.drivers.record_cipher cimport RecordCipher
from orcalike.transport.wire.message cimport Message


cdef class SealedChannel(Channel):
    cdef object handshake           # None when it is over
    cdef RecordCipher sends, comes  # of both directions, when it is over
    # What is sent: a handshake's message, or a record of the first `sealed` bytes that are queued.
    cdef unsigned char* plain
    cdef unsigned char* record
    cdef Py_ssize_t gone, record_end, sealed
    # What came, and is no whole record yet.
    cdef unsigned char* raw
    cdef Py_ssize_t raw_begin, raw_end

    cdef int start(self) except -1
    cdef bint shake(self) except -1
    cdef int say(self, bytes message) except -1
    cdef ssize_t send_first(self) noexcept
    cdef int seal(self) except -1
    cdef Py_ssize_t gather(self) except -1
    cdef int go_on(self, Message message, Py_ssize_t size) except -1
    cdef int open_records(self) except -1


cdef Channel make_channel(int fd, object process, object keys, bint connects)
