"""Atomic functions: what `@atomic` makes of a function of a module."""


cdef class Atomic:
    cdef readonly object function
    cdef readonly object guard
    cdef readonly bint undo
    cdef readonly object resilience
    cdef readonly int degree        # its own; -1 where it has none
    cdef readonly str name
    cdef public object guard_declared
    cdef public object info
