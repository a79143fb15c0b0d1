"""What those wait for that wait for little: for news of one object, or for what is due to this member alone (ADR-29).

Where members wake each other (RING), one in which nothing else is waited for need not be woken by all that others write.
"""

from libc.stdint cimport uint64_t


cdef class Interests:
    """How many threads and coroutines wait so, and for which objects: a bit for each 64th."""

    cdef int add(self, uint64_t interest, int more) noexcept:
        """So many more, or fewer, wait for news of an object, whose bit this is, or, if it is 0, for what is due to this member."""
        cdef int bit
        self.count += more
        for bit in range(64 if interest else 0):
            if interest >> bit & 1:
                self.waiting[bit] += more
                self.objects = self.objects | interest if self.waiting[bit] else self.objects & ~interest
        return 0
