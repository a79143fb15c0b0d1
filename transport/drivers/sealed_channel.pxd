"""A channel under a key: a handshake, then sealed records."""

from orcalike.transport.drivers.channel cimport Channel


cdef class SealedChannel(Channel):
    cdef object handshake           # None when it is over
    cdef object encrypt, decrypt    # AESGCM's `encrypt_into` and `decrypt_into`, when it is over
    cdef object invalid             # what `decrypt` raises
    cdef bytearray sent, came       # the nonces of the next record that is sent, and that comes
    # What is sent: a handshake's message, or a record of the first `sealed` bytes that are queued.
    cdef unsigned char* plain
    cdef unsigned char* record
    cdef Py_ssize_t gone, record_end, sealed
    cdef object plain_view, record_view     # as `encrypt` takes them, of `viewed` bytes
    cdef Py_ssize_t viewed
    # What came, and is no whole record yet.
    cdef unsigned char* raw
    cdef Py_ssize_t raw_begin, raw_end
    cdef object sealed_view, opened_view    # as `decrypt` takes them, of `opened` bytes at `source`
    cdef unsigned char* source
    cdef unsigned char* target
    cdef Py_ssize_t opened

    cdef int start(self) except -1
    cdef bint shake(self) except -1
    cdef int say(self, bytes message) except -1
    cdef int seal(self) except -1
    cdef int open_records(self) except -1
    cdef int view_next(self, unsigned char* source, Py_ssize_t size) except -1


cdef SealedChannel sealed_channel(int fd, int link, object keys, bint connects)
