"""COM: links to peers, as reliable FIFO channels."""

from libc.stdint cimport int64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.wire.message cimport MESSAGE_MAX, Message

cdef enum:
    FRAME_HEADER = 8        # length of the rest (4), magic, version, kind, zero
    FRAME_MAX = MESSAGE_MAX + 4096
    GREETING_MAX = 2048     # bytes before a non-member has said what it is
    MAGIC = 0x4F
    VERSION = 5             # of all that members send each other: another one when any of that changes (tests/protocol/testdata/wire.txt)


cdef class Peer:
    cdef readonly str address
    cdef readonly str reached_at        # another address that a link to it was made to, or ""
    cdef readonly object incarnation    # None until it has greeted
    cdef readonly int link              # -1 until there is one
    cdef readonly int position             # in the view, or -1
    cdef readonly bint greeted          # once, on this link or an earlier one
    cdef readonly bint replaced         # another endpoint has its address now
    cdef bint connecting                # a link was asked for, and the other end has not greeted on it yet
    cdef bint probed                    # that link was: it goes down if it does not stand
    cdef bint broke                     # a link to it broke, or could not be made, and links are missing since
    cdef list queue                     # messages that wait for the link
    cdef Py_ssize_t queued
    cdef readonly bint missed           # what was sent to it in this view was given up

    cdef give_up(self)
    cdef list take_contacts(self)


cdef class Com(Layer):
    cdef readonly object me
    cdef readonly str group
    cdef dict peers                     # by address
    cdef list links                     # peer by link, or None
    cdef list greeted                   # by link: the peer that has greeted on it, or None
    cdef list by_position                  # peer by position in the view; None for this member
    cdef object installed               # the view that they follow, or None
    cdef dict whys                      # why links of non-members are refused, for the driver
    cdef readonly dict counters         # what was dropped, by reason
    cdef tuple sought                   # members outside of the view that a link is to stand to
    cdef list overrun                   # peers that more waited for than may; not reported yet
    cdef int64_t pause                  # ns until links that are missing are tried again
    cdef int64_t pause_max              # the longest such pause
    cpdef link_up(self, int link, str address)
    cpdef link_down(self, int link, str why)
    cpdef receive(self, int link, Message frame)

    cdef int say_hello(self, int link) except -1
    cdef receive_first(self, int link, Message frame)
    cdef greet(self, int link, Peer peer, Message frame)
    cdef Peer peer(self, str address)
    cdef Peer known(self, str address, object incarnation)
    cdef want(self, Peer peer)
    cdef retry(self)
    cdef int keep(self, Peer peer, Message frame, int kind) except -1
    cdef int transmit(self, int link, Message message, int kind) except -1
    cpdef refuse(self, int link, str why)
