"""A ring: a queue of objects on the path that each invocation takes.

A deque costs a method call for each item and a list gives its memory back whenever it is empty; a
ring costs a store. The collector does not look into it, so what goes into one refers to nothing (messages,
packets, and tuples of these), or leaves it soon: what PACK hands up when the upcalls of an input have returned.
"""

from cpython.ref cimport Py_INCREF
from libc.stdlib cimport free, malloc

cimport cython


@cython.final
@cython.no_gc
cdef class Ring:
    """A queue that grows as it must. Look at `count` before you take from it."""

    def __cinit__(self):
        self.capacity = 16
        self.items = <void**>malloc(self.capacity * sizeof(void*))
        if self.items is NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.items is not NULL:
            self.clear()
            free(self.items)

    cdef int put_first(self, object item) except -1:
        if self.count == self.capacity:
            self.grow()
        Py_INCREF(item)
        self.first = (self.first - 1) & (self.capacity - 1)
        self.items[self.first] = <void*>item
        self.count += 1
        return 0

    cdef list all(self):
        """What is there, from the first to the last."""
        return [self.at(i) for i in range(self.count)]

    cdef void clear(self) noexcept:
        while self.count:
            self.drop()

    cdef int grow(self) except -1:
        cdef void** items = <void**>malloc(2 * self.capacity * sizeof(void*))
        cdef Py_ssize_t i
        if items is NULL:
            raise MemoryError
        for i in range(self.count):
            items[i] = self.items[(self.first + i) & (self.capacity - 1)]
        free(self.items)
        self.items = items
        self.first = 0
        self.capacity *= 2
        return 0
