"""ORDER: one order, in shared memory where all members are on one host, and through a sequencer where they are not."""

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.layers.ring cimport SharedOrder
from orcalike.transport.layers.total cimport Total


cdef class EitherOrder(Layer):
    cdef object config, me
    cdef object installed           # the view; None outside of the group
    cdef dict sizes                 # the parameters of both, by name
    cdef Layer current              # the one that orders in this view
    cdef SharedOrder in_memory      # it, if it is that one; else None
    cdef Total sequenced            # likewise
    cdef Layer past                 # the one before this view, if that was another
    cdef Total former               # that of the view before, which may have what others lack; or None
    cdef readonly dict apart        # members that share no memory, in pairs, since which view (ring/choice.py), as it began,
    cdef dict found                 # and as was found in it
    cdef int least                  # as `degree` was called last,
    cdef bint given                 # and `credit`
    cdef bint goes_over             # this member leads, and the next view can have its order in memory
    cdef bint is_due                # those that are apart were to be tried again, and something else kept the sequencer

    cdef int link(self) except -1
    cdef int use(self, Layer layer) except -1
    cdef int go_over(self, object view, object choice) except -1
    cdef object choice_of(self, object view, bytes cut)
    cdef bint can_share(self, object view, dict apart) except -1
    cdef int watch(self) except -1
    cdef object checked(self, bytes cut)
