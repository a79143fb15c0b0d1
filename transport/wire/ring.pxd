"""A ring: a queue of objects on the path that each invocation takes."""

from cpython.ref cimport Py_DECREF, Py_INCREF


cdef class Ring:
    cdef void** items               # owned; `capacity` of them, a power of two
    cdef Py_ssize_t first, count, capacity
    cdef int put_first(self, object item) except -1
    cdef list all(self)
    cdef void clear(self) noexcept
    cdef int grow(self) except -1

    cdef inline int put(self, object item) except -1:
        if self.count == self.capacity:
            self.grow()
        Py_INCREF(item)
        self.items[(self.first + self.count) & (self.capacity - 1)] = <void*>item
        self.count += 1
        return 0

    cdef inline object take(self):
        """The first item, which is there no longer."""
        cdef object item = <object>self.items[self.first]
        self.first = (self.first + 1) & (self.capacity - 1)
        self.count -= 1
        Py_DECREF(item)
        return item

    cdef inline void drop(self) noexcept:
        """The first item is there no longer."""
        cdef void* item = self.items[self.first]
        self.first = (self.first + 1) & (self.capacity - 1)
        self.count -= 1
        Py_DECREF(<object>item)

    cdef inline object at(self, Py_ssize_t i):
        """The item that has `i` before it."""
        return <object>self.items[(self.first + i) & (self.capacity - 1)]
