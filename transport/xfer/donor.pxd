"""Which members give the state, and how; and what XFER sends."""

from libc.stdint cimport uint32_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport Message
from orcalike.transport.xfer.kept_state cimport KeptState

cdef enum:
    # The first byte of a cast, ...
    DATA = 0
    COMPLETE = 1
    AGAIN = 6                       # then the incarnations of the donors that were tried (8 each)
    KEEP = 10                       # of a witness that keeps the state: the state as of here
    # ... and of a message to one member; then, but for OTHER, the epoch (4), the start (4) and a
    # number (4). The state is that at the view `epoch`, or at the cast whose seqno ends in `start`.
    PIECE = 2
    LAST = 3
    WANT = 4                        # the number is that of the piece that is wanted next
    OTHER = 5
    FAILED = 7                      # in a piece's place: why this donor cannot give the rest
    REFUSED = 8                     # likewise, and no other member can
    SINCE = 9                       # of what has come since that state, at a member that applies nothing
    HEADER = 13
    ANY_DONOR = 0                   # as a donor: all that are complete, whether it is known or not
    TRIES = 2                       # donors that a joiner tries


cdef class Transfer:
    """State on its way to one joiner, or to a member that keeps it."""
    cdef object joiner              # its incarnation
    cdef uint32_t epoch             # the number of the view as of which the state is
    cdef uint32_t start             # of a later cast, as of which it is: its seqno's end; or 0
    cdef object pieces              # iterator of what is still to give
    cdef bytes waiting              # the others that waited at that view; goes with the last piece
    cdef object sent                # deque of (number, kind, bytes) not acknowledged yet
    cdef uint32_t next              # number of the next piece
    cdef bint over                  # the last piece was given
    cdef bint is_kept               # by a witness, which is no joiner


cdef class Donor(Layer):
    cdef readonly object known_view       # as far as it was passed up
    cdef readonly bint complete     # this member's state is
    cdef public bint silent         # no layer above applies casts: they are not handed up
    cdef dict donors                # incarnation that waits for state -> its donor's incarnation
    cdef dict transfers             # incarnation -> Transfer, where this member is the donor
    cdef bint replays               # what was buffered is on its way up
    cdef bint leaves                # the application left while transfers are under way
    cdef readonly KeptState keeper  # what this member keeps of the state, which it does not apply; or None
    cdef bytes cut                  # of the view, where it keeps that

    cdef bint has_joiners(self)
    cdef list able(self)
    cdef list able_in(self, object view)
    cdef bint is_donor(self, object joiner)
    cdef admit(self, object view)
    cdef change_donor(self, object joiner, Message message)
    cdef take_back(self, object joiner)
    cdef hand_out(self)
    cdef begin(self, object joiner, uint32_t start, bint refused)
    cdef give(self, Transfer transfer)
    cdef end_transfer(self, Transfer transfer, int kind, bytes body)
    cdef put(self, Transfer transfer, int kind, bytes body)
    cdef tell(self, Transfer transfer, uint32_t number, int kind, bytes body)
    cdef acknowledged(self, int source, Message message)
    cdef give_to_keeper(self, object member, Message message)
    cdef keep_view(self, object view, bytes cut)
    cdef take_to_keep(self, int source, Message message)
    cdef renew_kept(self)
    cdef cast_kind(self, int kind)

cdef bytes reason_of(object error)
cdef int store_header(Message message, int kind, uint32_t epoch, uint32_t start, uint32_t number) except -1
