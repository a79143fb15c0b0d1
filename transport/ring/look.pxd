"""What reads look at: whether the order in shared memory has something that was not applied here."""

cdef extern from "ring/member.h" nogil:
    bint ring_has_news(const void* member) noexcept
