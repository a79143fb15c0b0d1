"""XFER: a joiner gets the state as it stood at the view that admits it."""

from libc.stdint cimport int64_t, uint32_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message


cdef class Transfer:
    """State on its way to one joiner."""
    cdef object joiner              # its incarnation
    cdef uint32_t epoch             # the number of the view as of which the state is
    cdef uint32_t start             # of a later cast, as of which it is: its seqno's end; or 0
    cdef object pieces              # iterator of what is still to give
    cdef bytes waiting              # the others that waited at that view; goes with the last piece
    cdef object sent                # deque of (number, kind, bytes) not acknowledged yet
    cdef uint32_t next              # number of the next piece
    cdef bint over                  # the last piece was given


cdef class Xfer(Layer):
    cdef readonly object view       # as far as it was passed up
    cdef readonly bint complete     # this member's state is
    cdef public bint silent         # no layer above applies casts: they are not handed up
    cdef dict donors                # incarnation that waits for state -> its donor's incarnation
    cdef dict transfers                 # incarnation -> Transfer, where this member is the donor
    cdef bint replays               # what was buffered is on its way up
    cdef object blocked             # the members that the view waits for, and why; None while it may go on
    cdef list kept                  # casts that wait until the state is complete
    cdef bint leaves                # the application left while transfers are under way
    # Joining.
    cdef uint32_t epoch             # number of the view whose state is awaited, or ...
    cdef uint32_t start             # ... the end of the seqno of this member's AGAIN
    cdef uint32_t wanted            # number of the next piece
    cdef object giver               # the incarnation that they come from; None as long as none came
    cdef bint begun                 # a piece of it came
    cdef bint deaf                  # that donor failed; its pieces are not taken
    cdef int64_t piece_timeout           # ns without a piece until another donor is asked
    cdef list tried                 # the donors that failed
    cdef str reason                 # why the first did
    cdef bint gives_up              # this member leaves, since the state does not come
    cdef object newest              # the view that is in force, while what comes is buffered
    cdef list buffered              # views and casts since, to apply on top
    cdef Py_ssize_t buffered_bytes

    cdef admit(self, object view)
    cdef change_donor(self, object joiner, Message message)
    cdef take_back(self, object joiner)
    cdef tell_incomplete(self)
    cdef cast_kept(self)
    cdef hand_out(self)
    cdef begin(self, object joiner, uint32_t start, bint refused)
    cdef give(self, Transfer transfer)
    cdef end_transfer(self, Transfer transfer, int kind, bytes body)
    cdef put(self, Transfer transfer, int kind, bytes body)
    cdef tell(self, Transfer transfer, uint32_t number, int kind, bytes body)
    cdef acknowledged(self, int source, Message message)
    cdef buffer(self, Message message)
    cdef take(self, int source, Message message)
    cdef bint take_next(self, int kind, bytes body, bint witness) except -1
    cdef failed(self, str why, bint refused)
    cdef expect(self)
    cdef ask_again(self)
    cdef start_again(self, uint32_t start)
    cdef begin_again(self, uint32_t epoch)
    cdef forget_giver(self)
    cdef finish(self, dict donors)
