"""SipHash-2-4 with tags of 16 bytes: a keyed hash for short messages."""

cdef enum:
    SIP_KEY_SIZE = 16
    SIP_TAG_SIZE = 16

cdef void siphash(const unsigned char* key, const unsigned char* data, Py_ssize_t size,
                  unsigned char* tag) noexcept nogil
