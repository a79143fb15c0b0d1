"""What a member knows of the order: its positions, and the packets that are not stable."""

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.total.member_acks cimport MemberAcks
from orcalike.transport.total.packets cimport Packets
from orcalike.transport.total.retransmit_buffer cimport RetransmitBuffer
from orcalike.transport.wire.message cimport Message


cdef extern from *:
    """
    #ifdef ORCALIKE_CHECKED
    #define ORCALIKE_POSITIONS_CHECKED 1
    #else
    #define ORCALIKE_POSITIONS_CHECKED 0
    #endif
    """
    const bint CHECKED "ORCALIKE_POSITIONS_CHECKED"     # in builds for debugging, and for sanitizers


cdef class Order(Layer):
    # Ten positions in the order. Each is the seqno of the first packet of which it is not true that ...
    cdef readonly uint64_t next         # ... it was delivered here,
    cdef readonly uint64_t held         # ... it and all before it are held here,
    cdef readonly uint64_t accepted     # ... it has r + 1 holders, as far as this member knows,
    cdef readonly uint64_t stable_mark  # ... all members hold it, as far as this member knows,
    cdef uint64_t acked                 # ... it was acknowledged to the sequencer as applied here,
    cdef uint64_t begun                 # ... it was numbered before this view,
    cdef uint64_t cut                   # ... it belongs to the cut that is waited for; 0 if none is.
    cdef readonly uint64_t seqno        # At the sequencer: ... it has its number,
    cdef uint64_t floor                 # ... all members have applied it,
    cdef uint64_t announced             # ... the members know that it is accepted.
    # After each input, `check_positions` holds:
    #     acked <= next <= accepted <= held;  seqno <= held;  floor <= next;  announced <= accepted
    # The buffer has no gaps, ends at `held`, and has all from `next` on. `seqno` is `held` at the
    # sequencer from VIEW to FLUSH; elsewhere its three stand as the view began. `begun` and
    # `stable_mark` are beyond `held` at a joiner that still lacks what is tentative.

    cdef readonly int position
    cdef readonly bint frozen       # between FLUSH and VIEW
    cdef readonly uint64_t stamp    # the latest of the packets that were ever held here
    cdef readonly RetransmitBuffer buffer
    cdef MemberAcks acks            # what each member has sent, expects and holds
    cdef Packets unordered          # packets of this member that have no number yet
    cdef Py_ssize_t unacked         # bytes delivered since `acked`
    cdef bint has_credit
    cdef frozenset lacking          # incarnations whose state is not complete
    cdef readonly int replicas      # members with replicas whose word counts for resilience
    cdef bint was_reset             # the view's lineage began with a reset: AVAILABLE is the rule
    cdef int mode                   # AVAILABLE where the group asks for that, else 0
    cdef int least                  # R as the layers above have set it
    cdef bint settles               # another order follows: nothing gets a number until all that has one is accepted
    cdef readonly Py_ssize_t window_packets, window_bytes
    cdef uint64_t unacked_packets       # after so many that were delivered it is acknowledged at once,
    cdef Py_ssize_t unacked_bytes       # or after so many bytes

    cdef int needed(self, int degree) except -1
    cdef bint is_acceptable(self, int degree) except -1
    cdef int tell_degree(self) except -1
    cdef int settle(self) except -1
    cdef bint is_settled(self) noexcept
    cdef int keep(self, Message message, Py_ssize_t size, int position, int degree, uint64_t counter,
                  uint64_t seqno, uint64_t stamp) except -1
    cdef int deliver(self, Message message, int position, uint64_t seqno, uint64_t stamp) except -1
    cdef int deliver_accepted(self) except -1
    cdef int trim(self, uint64_t stable) except -1
    cdef int check_positions(self) except -1
