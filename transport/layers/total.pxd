"""TOTAL: one order through a sequencer."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from orcalike.transport.layers.base cimport Layer
from orcalike.transport.layers.history cimport Held, History
from orcalike.transport.layers.roster cimport Roster
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring


cdef class Sent:
    """A packet of this member that it has not seen numbered yet."""
    cdef Message message
    cdef Py_ssize_t size            # of its body, which ends where the message ends
    cdef uint64_t counter
    cdef int degree


cdef class Total(Layer):
    cdef readonly object me, view
    cdef object after               # the view to come, while the rest of the last one is delivered
    cdef readonly int place
    cdef readonly bint frozen       # between FLUSH and VIEW
    # As every member.
    cdef readonly uint64_t next     # the seqno that is delivered next
    cdef readonly uint64_t held     # all packets below are held here
    cdef readonly uint64_t accepted # all packets below have r + 1 holders
    cdef readonly uint64_t stable_mark  # all members hold what is below
    cdef readonly History history   # what is not stable, up to `held`
    cdef readonly tuple begins      # `next` and `held` as the view began
    cdef uint64_t begun             # packets below were numbered before this view
    cdef readonly uint64_t counter  # of this member's latest packet
    cdef Ring unordered             # of Sent
    cdef uint64_t submitted         # the counter of the last one that was sent in this view
    cdef uint64_t overdue           # the first unordered one, when it was looked for last
    cdef uint64_t acked             # up to here the sequencer has been told what is applied
    cdef Py_ssize_t unacked         # bytes delivered since
    cdef bint owes                  # the sequencer waits for word of what is held here
    cdef bint has_credit
    cdef dict counters              # incarnation -> counter of its last packet in the order
    cdef Roster roster              # the same by place in the view, and what the others have said
    cdef uint64_t cut               # up to here packets must be held; 0 where nobody asks
    cdef readonly uint64_t stamp    # the latest of the packets that were ever held here
    cdef frozenset lacking          # incarnations whose state is not complete
    cdef readonly int replicas               # members with replicas whose word counts for resilience
    cdef int mode                   # AVAILABLE where the group asks for that, else 0
    cdef bint was_reset             # the view's lineage began with a reset: AVAILABLE is the rule
    cdef int least                  # R as the layers above have told it
    # As the sequencer.
    cdef readonly uint64_t seqno    # the next to give
    cdef uint64_t announced         # how far the members know what is accepted
    cdef bint announces             # some of them cannot know it by themselves
    cdef Ring queue                 # requests that wait for credit
    cdef uint64_t floor             # all members have applied what is below
    cdef readonly Py_ssize_t window_packets, window_bytes
    cdef int64_t slow

    cdef int submit(self, Sent sent, Message message) except -1
    cdef int submit_more(self) except -1
    cdef bint is_acceptable(self, int degree) except -1
    cdef int needed(self, int degree) except -1
    cdef int tell_degree(self) except -1
    cdef int report(self) except -1
    cdef uint64_t expected(self)
    cdef int take(self, int place, uint64_t counter, int degree, Message message) except -1
    cdef bint has_room(self, Py_ssize_t size) noexcept
    cdef bint is_whole(self) noexcept
    cdef int give_numbers(self) except -1
    cdef int look_for_own(self) except -1
    cdef int number(self, int place, uint64_t counter, int degree, Message message) except -1
    cdef int heard_of(self, int place, uint64_t expect, uint64_t holds) except -1
    cdef int accept_more(self) except -1
    cdef int announce(self) except -1
    cdef int keep(self, Message message, Py_ssize_t size, int place, int degree, uint64_t counter,
                  uint64_t seqno, uint64_t stamp) except -1
    cdef int deliver(self, Message message, int place, uint64_t seqno, uint64_t stamp) except -1
    cdef int deliver_accepted(self) except -1
    cdef int trim(self, uint64_t stable) except -1
    cdef int arrived(self, Message message, const unsigned char* header) except -1
    cdef str wrong(self, int place, uint64_t counter)
    cdef check_cut(self)
    cdef int fall_back_to(self, uint64_t last) except -1
    cdef int settle_in(self, object before, object view) except -1
    cdef int resume(self, object before) except -1
    cdef int count_whole(self) except -1
    cdef int store_ordered(self, Message message, Held held) except -1
