"""MBRSHIP: views, and which messages belong to which."""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class Mbrship(Layer):
    cdef readonly object me, options
    cdef readonly object agreement, detector, leases
    cdef readonly object view       # None outside of the group
    cdef readonly int place         # this member's place in it
    cdef readonly dict unlinked     # incarnation -> why, for members whose link is down
    cdef uint64_t key               # identity of the view, as data headers carry it
    cdef object early               # data of views that are not installed here yet
    cdef object pending             # a value that was decided, and whose cut is not all here
    cdef object outcome             # the value by which this member is out of the group
    cdef dict answered              # when those that speak of another view were told about this one
    cdef set asked                  # the members that were asked for what the pending value lacks
    cdef set passed_on              # joiners whose requests the leader was told of in this view
    cdef dict questioned            # addresses that were asked anything since the view began
    cdef object left_behind         # members that a view went on without, and that are sought
    cdef dict former                # incarnations of earlier views, the last ones at the end
    cdef readonly str seed          # the address that a join goes through
    cdef readonly int stale         # how many messages of other views were dropped
    cdef int64_t slow               # ns that a change of view waits for a member that beats
    cdef int64_t ask_at             # when to ask again to be let in
    cdef int64_t lease_at           # when a lease that a decision waits for is over
    cdef int64_t frozen_at
    cdef object leader              # whether the one that leads hangs
    cdef object awaited             # the incarnation of the leader that knows of this member
    cdef readonly int least         # R, as the application has said (H2)
    cdef bint leaves, over
    cdef public object on_change    # called with each change of a role's state, or None

    cdef elsewhere(self, Message message, uint64_t key, bint is_cast)
    cdef control(self, Message message)
    cdef dispatch(self, Message message, object it)
    cdef asked_to_join(self, Message message, object member, object options)
    cdef requested(self, int source, object member, object options)
    cdef behind(self, Message message)
    cdef ahead(self, Message message, tuple identity, bytes held)
    cdef gone(self, Message message)
    cdef told_expelled(self, Message message, object view)
    cdef correct(self, Message message, object view)
    cdef decided(self, object view, bytes cut)
    cdef suspicions(self)
    cdef watch(self, bint is_all=*)
    cdef ask_strangers(self)
    cdef plan(self)
    cdef replay(self, object entry)
    cdef say_here(self, bint again=*)
    cdef exit(self, str why)
    cdef step(self, object event)
    cdef carry_out(self, object it)
    cdef freeze(self)
    cdef mark(self, str step)

