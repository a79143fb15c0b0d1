"""What those wait for that wait for little: for news of one object, or for what is due to this member alone (ADR-29).

Where members wake each other (RING), one in which nothing else is waited for need not be woken by all that others write.
"""

from libc.stdint cimport uint64_t

cdef extern from *:
    int place_of "__builtin_ctzll"(uint64_t bit) noexcept


cdef class Interests:
    """How many threads and coroutines wait so, and for which objects: a bit for each 64th."""

    cdef int add(self, uint64_t interest, int more) noexcept:
        """So many more, or fewer, wait for news of an object, whose bit this is, or, if it is 0, for what is due to this member."""
        cdef int place
        self.count += more
        if interest:
            place = place_of(interest)
            self.waiting[place] += more
            self.objects = self.objects | interest if self.waiting[place] else self.objects & ~interest
        return 0
