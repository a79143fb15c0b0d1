"""Resilience degrees as they travel: a byte, and a flag beside it."""

cpdef enum:
    MEMBERS_MAX = 1024  # the largest view: a position in it fits the wire, and the list of it a control message
    NUMBER_MAX = 253    # the largest degree that is a number
    MAJORITY = 254
    ALL = 255           # all members of the view
    # A flag beside a degree: as far as the view has members for it, MIN(r, members - 1) (Amoeba 3.1).
    # Members count that have replicas, with complete state.
    AVAILABLE = 256

cdef enum:
    NO_FLAGS = 0xFF     # beside a degree: what is left is the degree without its flag


cdef inline bint is_large_enough(int replicas, int degree, bint was_reset) noexcept:
    """Whether a view with so many members with replicas, of complete state, is large enough for a degree (H2)."""
    cdef int number = degree & NO_FLAGS
    return (number == 0 or number > NUMBER_MAX or replicas > number
            or was_reset or degree & AVAILABLE != 0)


cdef inline int least_kept(int least, int replicas, bint is_lowered) noexcept:
    """R in H1, as far as such a view keeps it; `is_lowered`: by AVAILABLE, or by a reset."""
    if least <= NUMBER_MAX and is_lowered:
        return min(least, max(replicas - 1, 0))
    return least
