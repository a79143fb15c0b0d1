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
