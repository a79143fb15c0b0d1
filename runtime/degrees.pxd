"""The resilience degrees in use, and the smallest of them, R."""


cdef class Degrees:
    cdef object runtime             # knows the view and the objects: `dispatch.Runtime`, whose module cimports this one
    cdef public bint patient        # a call that the view is too small for waits, or raises
    cdef public int group           # the degree of what has none of its own
    cdef public bint available      # a degree counts as far as the view has members for it
    cdef public bint single         # no other process can join: all degrees are 0
    cdef public int least           # R, as far as the order has gone here
    cdef bint said_single

    cdef int check(self, object operation, int degree) except -1
    cpdef bint is_too_small(self, int degree) except -1

    cdef inline int for_call(self, object operation, int degree) except -1:
        """The degree of a call, where it is not 0; raises where the view is too small for it."""
        if self.single:
            return 0
        if not self.patient:
            self.check(operation, degree)
        return degree
