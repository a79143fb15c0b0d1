"""MBRSHIP: views, and which messages belong to which."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message

cdef enum:
    HEADER = 8              # the view of a message


cdef class Mbrship(Layer):
    cdef readonly object me
    cdef readonly object agreement, leases
    cdef readonly object view       # None outside of the group
    cdef readonly int position         # this member's position in it
    cdef uint64_t key               # identity of the view, as data headers carry it
    cdef readonly object outside    # what it does while it is in no view
    cdef readonly object reachability   # which members are silent, and whose links are down
    cdef readonly object detector   # its failure detector
    cdef object leader              # whether the one that leads hangs
    cdef object others              # what is sent to endpoints of other views, and asked of them
    cdef object left_behind         # members that a view went on without, and that are sought
    cdef object early               # data of views that are not installed here yet
    cdef object pending             # a value that was decided, and whose cut is not all here
    cdef readonly int stale         # how many messages of other views were dropped
    cdef int64_t slow               # ns that a change of view waits for a member that beats
    cdef int64_t lease_at           # when a lease that a decision waits for is over
    cdef int64_t frozen_at
    cdef readonly int least         # R, as the application has said (H2)
    cdef bint leaves, over
    cdef public object on_change    # called with each change of a role's state, or None

    cdef ask_non_members(self)
    cpdef plan(self)
    cdef elsewhere(self, Message message, uint64_t key, bint is_cast)
    cdef gone(self, Message message)
    cdef control(self, Message message)
    cdef dispatch(self, Message message, object it)
    cdef decided(self, object view, bytes cut)
    cdef notified_expelled(self, Message message, object view, str why)
    cpdef step(self, object event)
    cdef carry_out(self, object it)
    cdef freeze(self)
    cpdef mark(self, str step)
    cdef replay(self, object entry)
    cdef exit(self, str why)
