"""What is looked at in the order in shared memory: by reads, and by what sends without waiting."""

cdef extern from "ring/member.h" nogil:
    bint ring_is_stale(const void* member) noexcept     # something was not applied here
    bint ring_is_behind(const void* member) noexcept    # another member has not applied the own last packet
