# cython: allow_none_for_extension_args=False
"""Which resilience degrees a view meets whose order is in shared memory: all members hold what is in it.

Those count whose state is complete (H3, H9), and for whether a view is large enough, of these those with replicas (H2).
"""

from orcalike.transport.degree import number_of
from orcalike.transport.view import resets_of

from orcalike.transport.degree cimport AVAILABLE, NO_FLAGS, NUMBER_MAX, is_large_enough


cdef class Holders:
    """The members of one view whose word counts."""

    cdef int count(self, object view, object lacking) except -1:
        """Count those of a view, without these incarnations, whose state is not complete."""
        self.was_reset = resets_of(view.lineage) > 0
        self.replicas = self.whole = self.met = 0
        self.size = len(view.members)
        for member in view.members:
            if member.incarnation not in lacking:
                self.whole += 1
                self.replicas += not member.witness
        return 0

    cdef bint suffice(self, int degree) noexcept:
        """Whether the view has enough members with replicas for a degree."""
        return is_large_enough(self.replicas, degree, self.was_reset)

    cdef bint meet(self, int degree) except -1:
        """Whether as many members hold what is in memory as a degree asks for."""
        cdef int number = degree & NO_FLAGS
        if number == 0:
            return True
        if not self.suffice(degree):
            return False
        if number > NUMBER_MAX:
            number = number_of(number, self.size)
        elif self.was_reset or degree & AVAILABLE:
            number = min(number, max(self.replicas - 1, 0))
        if self.whole <= number:
            return False
        self.met = degree
        return True
