"""Atomic functions: what `@atomic` makes of a function of a module."""


cdef class Atomic:
    cdef readonly object function
    cdef readonly object guard
    cdef readonly bint undo
    cdef readonly object resilience
    cdef readonly int degree        # its own; -1 where it has none
    cdef readonly str name
    cdef Py_ssize_t required        # positional arguments
    cdef Py_ssize_t accepts         # the most of them, -1 for any number
    cdef bint keywords              # some without a default can be given by keyword only
    cdef public object guard_declared
    cdef public object info

    cdef tuple place(self, tuple args, dict named)
