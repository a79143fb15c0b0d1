"""Signal handlers wait while the main thread is inside the core."""


cdef enum:
    # What the main thread runs that no handler may end: nothing, something, or what Ctrl-C waits for to end.
    RUNS_NOTHING = 0
    RUNS = 1
    RUNS_STILL = 2

ctypedef int (*Asking)(bint insists) noexcept


cdef void hold() noexcept
cdef bint is_held() noexcept
cdef int drop() except -1
cdef bint drop_later() noexcept
cdef bint interrupted() except -1
cdef int surface() except -1
cdef int deliver() except -1
cdef void ask_also(Asking is_busy) noexcept
cdef void block_signals() noexcept nogil
