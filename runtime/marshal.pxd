"""The codec for whatever can travel; what is plain is written and read by `plain`."""


cdef class Codec:
    cdef readonly object reference_of   # the id of a shared object, None for any other value
    cdef readonly object object_of      # the shared object with this id
    cdef readonly Py_ssize_t max_bytes  # the longest that `encode` gives and `decode` takes
    cdef readonly int max_depth         # how deep containers may lie in one another
    cdef object packer                  # a Packer that no call is using, or None

    cdef bytes encode_slow(self, tuple values, str what, int head=*)
    cdef unsigned char* put_known(self, unsigned char* p, unsigned char* stop, tuple values) except? NULL
    cdef list decode_slow(self, const unsigned char* data, Py_ssize_t size)


cdef int require(int room) except -1
cdef bint fits(object value)
cdef str path(list steps)
cdef str shown(object key)
