"""XFER: a joiner gets the state as it stood at the view that admits it."""

from libc.stdint cimport int64_t, uint32_t

from orcalike.transport.wire.message cimport Message
from orcalike.transport.xfer.donor cimport Donor


cdef class Xfer(Donor):
    cdef object blocked             # the members that the view waits for, and why; None while it may go on
    cdef list kept                  # casts that wait until the state is complete
    # Joining.
    cdef uint32_t epoch             # number of the view whose state is awaited, or ...
    cdef uint32_t start             # ... the end of the seqno of this member's AGAIN
    cdef uint32_t wanted            # number of the next piece
    cdef object giver               # the incarnation that they come from; None as long as none came
    cdef bint begun                 # a piece of it came
    cdef bint was_begun             # a piece of another donor came
    cdef list since                 # what has come since that state: pieces, and in the end views and casts
    cdef bint deaf                  # that donor failed; its pieces are not taken
    cdef int64_t piece_timeout      # ns without a piece until another donor is asked
    cdef list tried                 # the donors that failed
    cdef str reason                 # why the first did
    cdef bint gives_up              # this member leaves, since the state does not come
    cdef object newest              # the view that is in force, while what comes is buffered
    cdef list buffered              # views and casts since, to apply on top
    cdef Py_ssize_t buffered_bytes

    cdef object replay_since(self)
    cdef tell_incomplete(self)
    cdef cast_kept(self)
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
