"""A ring: a queue of objects on the path that each invocation takes."""


cdef class Ring:
    cdef void** items               # owned; `capacity` of them, a power of two
    cdef Py_ssize_t first, count, capacity
    cdef int put(self, object item) except -1
    cdef int put_first(self, object item) except -1
    cdef object take(self)
    cdef object take_last(self)
    cdef list all(self)
    cdef void clear(self) noexcept
    cdef int grow(self) except -1

    cdef inline object at(self, Py_ssize_t i):
        """The item that has `i` before it."""
        return <object>self.items[(self.first + i) & (self.capacity - 1)]
