"""The event loop that runs on a thread, if one does: whether calls may wait there, and whose turn it is."""

from libc.stdint cimport int64_t


cdef object running_loop()
cdef object loop_here()
cdef object cancelled_error()
cdef bint must_not_block()
cdef int refuse_loop(object operation) except -1
cdef int none_in_a_row() noexcept
cdef bint is_turn_of_others(int64_t sent_at)
cdef int tell(object future) except -1
