"""The cipher of one direction of a connection: AES-256-GCM, whose nonces count the records (S4, S5).

A short record is sealed and opened by libsodium, which the package PyNaCl brings, where it is installed
and the processor has instructions for AES: one call in C, with a key that was expanded once. All others
are by `cryptography`, which makes a context of OpenSSL for each record: that takes longer than the
cipher of a short one, and its cipher is the quicker one. No byte of a record depends on which it was.
"""

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITE
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdlib cimport free

cdef extern from "<dlfcn.h>" nogil:
    void* dlopen(const char* path, int flags)
    void* dlsym(void* handle, const char* name)
    enum:
        RTLD_NOW

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** made, size_t alignment, size_t size)

cdef extern from "<string.h>" nogil:
    void explicit_bzero(void* p, size_t size)

ctypedef unsigned long long ull

cdef enum:
    KEY = 32
    SHORT = 3072                # bytes of a record up to which libsodium is the quicker one
    ALIGNMENT = 64              # of an expanded key; libsodium wants 16


cdef struct Functions:
    size_t (*expanded_size)() noexcept nogil
    int (*expand)(void* expanded, const unsigned char* key) noexcept nogil
    int (*encrypt)(unsigned char* record, ull* length, const unsigned char* plain, ull size,
                   const unsigned char* beside, ull beside_size, const unsigned char* secret,
                   const unsigned char* nonce, const void* expanded) noexcept nogil
    int (*decrypt)(unsigned char* plain, ull* length, unsigned char* secret,
                   const unsigned char* record, ull size, const unsigned char* beside,
                   ull beside_size, const unsigned char* nonce, const void* expanded) noexcept nogil

cdef Functions sodium           # valid if `lack` is ""
cdef str lack = None            # why they are not used; None: they were not looked for yet


def why_not_quick(*, bint anew=False):
    """Why libsodium takes no part; "" where it does. It is found at the first call, and again with `anew`."""
    global lack
    if lack is None or anew:
        lack = find_sodium()
    return lack


cdef str find_sodium():
    """Find libsodium's functions; what is missing, "" for nothing.

    They are documented, and PyNaCl's compiled module has them all. Its name is PyNaCl's own affair, and
    what its functions in Python take is too slow: so nothing is taken for granted about it.
    """
    global sodium
    cdef void* handle
    cdef Functions found
    try:
        from nacl import _sodium
        if _sodium.lib.sodium_init() < 0:
            return "libsodium does not start"
        if not _sodium.lib.crypto_aead_aes256gcm_is_available():
            return "the processor has no instructions for AES that libsodium uses"
        path = _sodium.__file__.encode()
    except ImportError as error:
        return f"PyNaCl: {error}: pip install orcalike[net]"
    except Exception as error:          # whatever is wrong with it, `cryptography` is there
        return f"PyNaCl: {type(error).__name__}: {error}"
    handle = dlopen(path, RTLD_NOW)     # it is loaded, and stays
    if handle is NULL:
        return "PyNaCl: its compiled module cannot be opened"
    (<void**>&found.expanded_size)[0] = dlsym(handle, "crypto_aead_aes256gcm_statebytes")
    (<void**>&found.expand)[0] = dlsym(handle, "crypto_aead_aes256gcm_beforenm")
    (<void**>&found.encrypt)[0] = dlsym(handle, "crypto_aead_aes256gcm_encrypt_afternm")
    (<void**>&found.decrypt)[0] = dlsym(handle, "crypto_aead_aes256gcm_decrypt_afternm")
    if (found.expanded_size is NULL or found.expand is NULL or found.encrypt is NULL
            or found.decrypt is NULL):
        return "PyNaCl: its libsodium lacks a function"
    sodium = found
    return ""


cdef class RecordCipher:
    """Seals the records of a direction, or opens them, under a key of 32 bytes."""

    def __cinit__(self, bytes key not None):
        # Not at the top: it takes long, and a group on Unix sockets has no keys.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        if len(key) != KEY:
            raise ValueError(f"a key has {KEY} bytes")
        cipher = AESGCM(key)
        self.encrypt, self.decrypt, self.invalid = cipher.encrypt_into, cipher.decrypt_into, InvalidTag
        if not why_not_quick():
            if posix_memalign(&self.expanded, ALIGNMENT, sodium.expanded_size()) != 0:
                self.expanded = NULL
                raise MemoryError
            sodium.expand(self.expanded, <const unsigned char*>key)

    def __dealloc__(self):
        if self.expanded is not NULL:
            # It begins with the key; a plain memset before `free` is left out by compilers.
            explicit_bzero(self.expanded, sodium.expanded_size())
            free(self.expanded)

    cdef int seal(self, const unsigned char* plain, Py_ssize_t size, unsigned char* record) except -1:
        """Write the next record, of `size` and TAG bytes."""
        if self.expanded is not NULL and size <= SHORT:
            self.quick += 1
            sodium.encrypt(record, NULL, plain, size, NULL, 0, NULL, self.nonce, self.expanded)
        else:
            self.view(plain, size, record, size + TAG)
            self.encrypt(PyBytes_FromStringAndSize(<char*>self.nonce, NONCE), self.source_view, None,
                         self.target_view)
        count_up(self.nonce)
        return 0

    cdef bint open(self, const unsigned char* record, Py_ssize_t size, unsigned char* plain) except -1:
        """Write what the next record holds, TAG bytes less than `size`; False if it does not open."""
        if self.expanded is not NULL and size - TAG <= SHORT:
            self.quick += 1
            if sodium.decrypt(plain, NULL, NULL, record, size, NULL, 0, self.nonce, self.expanded) != 0:
                return False
        else:
            self.view(record, size, plain, size - TAG)
            try:
                self.decrypt(PyBytes_FromStringAndSize(<char*>self.nonce, NONCE), self.source_view, None,
                             self.target_view)
            except self.invalid:
                return False
        count_up(self.nonce)
        return True

    cdef int view(self, const unsigned char* source, Py_ssize_t size, unsigned char* target,
                  Py_ssize_t room) except -1:
        """Have views of both; those of the last record if they are the same, as often."""
        if source == self.source and target == self.target and size == self.size:
            return 0
        self.size = -1                  # until both are made
        self.source_view = PyMemoryView_FromMemory(<char*>source, size, PyBUF_READ)
        self.target_view = PyMemoryView_FromMemory(<char*>target, room, PyBUF_WRITE)
        self.source, self.target, self.size = source, target, size
        return 0

    def seal_bytes(self, bytes plain not None):
        """The next record, for tests."""
        record = PyBytes_FromStringAndSize(NULL, len(plain) + TAG)
        self.seal(plain, len(plain), <unsigned char*><char*>record)
        return record

    def open_bytes(self, bytes record not None):
        """What the next record holds, for tests; None if it does not open."""
        if len(record) < TAG:
            return None
        plain = PyBytes_FromStringAndSize(NULL, len(record) - TAG)
        return plain if self.open(record, len(record), <unsigned char*><char*>plain) else None


cdef int count_up(unsigned char* nonce) noexcept:
    """The next one: its last 8 bytes are a number, big-endian."""
    cdef int i = NONCE - 1
    nonce[i] += 1
    while nonce[i] == 0:
        i -= 1
        nonce[i] += 1
    return 0
