"""The cipher of one direction of a connection: AES-256-GCM, whose nonces count the records."""

cdef enum:
    TAG = 16                    # bytes by which a record is longer than what it holds
    NONCE = 12


cdef class RecordCipher:
    cdef void* expanded         # the key as libsodium takes it; NULL where it is not used
    cdef object encrypt, decrypt    # of `cryptography`
    cdef object invalid             # what `decrypt` raises
    cdef unsigned char nonce[NONCE] # of the next record
    cdef readonly unsigned long long quick      # records that libsodium has sealed or opened
    # Views of the last record that `cryptography` has sealed or opened.
    cdef const unsigned char* source
    cdef unsigned char* target
    cdef Py_ssize_t size
    cdef object source_view, target_view

    cdef int seal(self, const unsigned char* plain, Py_ssize_t size, unsigned char* record) except -1
    cdef bint open(self, const unsigned char* record, Py_ssize_t size, unsigned char* plain) except -1
    cdef int view(self, const unsigned char* source, Py_ssize_t size, unsigned char* target,
                  Py_ssize_t room) except -1
