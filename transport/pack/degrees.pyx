"""Which resilience degree each of a member's own messages has, as far as they have not come back.

A message that is committed makes no Python object (`transport.layers.pack`), so these are in memory of
their own.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

cimport cython


@cython.final
@cython.no_gc
cdef class DegreesOfMessages:
    """Runs of messages of one degree, by the message's number; they cost nothing while it is the same."""

    def __cinit__(self):
        self.make_room()
        self.put(0, 0)

    def __dealloc__(self):
        free(self.runs)

    cpdef int begin(self, uint64_t ticket, unsigned char degree, uint64_t returned) except -1:
        """From this message on they have this degree; those below `returned` have come back."""
        while self.stop - self.first > 1 and self.runs[self.first + 1].first <= returned:
            self.first += 1
        if self.runs[self.stop - 1].first == ticket:    # after one that was taken back
            self.runs[self.stop - 1].degree = degree
            return 0
        return self.put(ticket, degree)

    cpdef unsigned char of(self, uint64_t ticket) noexcept:
        """The degree of a message, which has not come back."""
        cdef Py_ssize_t i = self.stop
        while i > self.first:
            i -= 1
            if self.runs[i].first <= ticket:
                return self.runs[i].degree
        return 0

    cpdef unsigned char largest(self, uint64_t first, uint64_t count) noexcept:
        """The degree of a packet of so many messages."""
        cdef unsigned char found = self.of(first)
        cdef Py_ssize_t i
        for i in range(self.first, self.stop):
            if first < self.runs[i].first < first + count:
                found = max(found, self.runs[i].degree)
        return found

    cpdef int clear(self, uint64_t ticket) except -1:
        """A message has none any more."""
        cdef unsigned char after = self.of(ticket + 1)
        cdef Py_ssize_t i, behind
        if not self.of(ticket):
            return 0
        if self.capacity - self.stop < 2:
            self.make_room()            # which moves them: no place is looked for before
        i = self.first
        while i < self.stop and self.runs[i].first < ticket:
            i += 1
        behind = i                      # of those that begin here two are left
        while behind < self.stop and self.runs[behind].first <= ticket + 1:
            behind += 1
        memmove(&self.runs[i + 2], &self.runs[behind], (self.stop - behind) * sizeof(Run))
        self.stop += 2 - (behind - i)
        self.runs[i] = Run(ticket, 0)
        self.runs[i + 1] = Run(ticket + 1, after)
        return 0

    cdef int put(self, uint64_t first, unsigned char degree) except -1:
        if self.stop == self.capacity:
            self.make_room()
        self.runs[self.stop] = Run(first, degree)
        self.stop += 1
        return 0

    cdef int make_room(self) except -1:
        """Move those that count to the beginning, into more memory where these are most of it."""
        cdef Py_ssize_t count = self.stop - self.first
        cdef Py_ssize_t capacity = max(16, 2 * self.capacity if 2 * count > self.capacity else self.capacity)
        cdef Run* runs = <Run*>malloc(capacity * sizeof(Run))
        if runs is NULL:
            raise MemoryError
        if count:
            memcpy(runs, self.runs + self.first, count * sizeof(Run))
        free(self.runs)
        self.runs, self.capacity = runs, capacity
        self.first, self.stop = 0, count
        return 0
