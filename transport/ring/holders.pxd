"""Which resilience degrees a view meets whose order is in shared memory."""


cdef class Holders:
    cdef readonly int replicas      # members with replicas, of complete state
    cdef int whole                  # members of complete state
    cdef int size                   # members
    cdef bint was_reset
    cdef int met                    # the degree, with its flag, that was asked for last and is met; or 0

    cdef int count(self, object view, object lacking) except -1
    cdef bint suffice(self, int degree) noexcept
    cdef bint meet(self, int degree) except -1

    cdef inline bint have_met(self, int degree) except -1:
        """As `meet`, for a degree that is mostly the one before."""
        return degree == self.met or self.meet(degree)
