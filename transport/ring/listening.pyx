# cython: allow_none_for_extension_args=False
"""What news wakes this member, of the order in memory (ADR-29): RING's part of that.

A thread that dozes sleeps on the futex of the order; else the alarm is set, a pipe in the driver's epoll set. If nothing waits here, or only
calls that wait for little do, neither is for all news: after some the member looks again in a while.
"""

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.ring_segment cimport RING_ANYTHING, RING_OUT, ring_arm_eventfd, ring_is_in
from orcalike.transport.layers.base cimport NEVER, Core
from orcalike.transport.ring.fast cimport FastOrder

cdef enum:
    LOOKED_AGAIN = 5000000000       # ns: one that was to write to the alarm may have ended, and not be in the view


cdef class ListeningOrder(FastOrder):
    """An order in memory, of which news wakes this member."""

    def __init__(self, Core core, config, me, slots, lane):
        super().__init__(core, config, me, slots, lane)
        self.linger = config.freshness
        self.linger_at = self.look_at = NEVER
        self.spares = ~<uint64_t>0

    cdef int listen(self) except -1:
        """Be woken by the next news, or look again soon where there was some."""
        self.core.by_futex = False
        if self.is_out or self.at_fence:
            self.linger_at = self.core.doze_until = NEVER   # nothing is to come that is for this view
            self.segment.ignore_news()
        elif self.allowed <= 0:         # one that writes goes on itself, as a rule
            self.linger_at = self.core.now + (self.linger if self.shares and not self.core.is_awaited() else 0)
            self.core.lingers = True
            self.core.doze_until = NEVER
        elif self.core.dozes:
            self.linger_at = NEVER
            self.core.by_futex = True
            # In this order: one that begins the view after that look wakes this member.
            self.listens_for = self.interest(&self.core.doze_until)
            if self.segment.listen(self.listens_for) or not self.may_append and self.have_all_begun():
                self.core.again(self)
            elif not self.delivered:
                self.look_at_row()
        elif not self.armed or self.listens_for != RING_ANYTHING:
            self.listen_by_alarm(self.interest(&self.linger_at))
        self.delivered = False
        self.set_deadline()
        return 0

    cdef uint64_t interest(self, int64_t* until) noexcept:
        """What news is to wake this member. Where all that waits here waits for little, or nothing does, that is not all news for a while
        after there was some, as others may write much: `until` says when to look again."""
        if not self.linger or self.core.waiting:
            until[0] = NEVER
        elif until[0] != NEVER and until[0] > self.core.now:
            pass
        elif self.delivered:
            until[0] = self.core.now + self.linger
        else:
            until[0] = NEVER
        self.core.lingers = until[0] != NEVER
        return self.core.patient.objects if self.core.lingers else <uint64_t>RING_ANYTHING

    cdef int listen_by_alarm(self, uint64_t interest) except -1:
        """Have the alarm set by news of interest, and by what is due to this member."""
        if self.core.lingers and (not self.core.patient.count or self.armed and not interest & ~self.listens_for):
            return 0                    # nothing waits for any, or it is so
        self.armed, self.listens_for = True, interest
        self.look_at = self.core.now + LOOKED_AGAIN
        if ring_arm_eventfd(&self.segment.member, interest):
            self.core.again(self)
        elif not self.delivered:
            self.look_at_row()
        return 0

    cdef int look_at_row(self) except -1:
        """There was no news: is this member still in the order, and does its row say there what it has written?"""
        self.check_row()
        if not ring_is_in(&self.segment.member):
            self.stopped_at(RING_OUT)
        return 0

    cpdef woken(self):
        self.armed = False
        self.core.again(self)

    cdef int stopped_at(self, int found) except -1:
        """There is an entry that is not to be delivered, or this member is out."""
        raise NotImplementedError
