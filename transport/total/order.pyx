# cython: allow_none_for_extension_args=False
"""What each member does with numbered packets: keep them, deliver them in order, let them go.

TOTAL is an `Order` that takes part in changes of view; its `Sequencer` works on the same positions
(`order.pxd` says what each is, and how they stand to each other).
"""

from orcalike.transport.degree import number_of

from libc.stdint cimport uint64_t

from orcalike.transport.degree cimport AVAILABLE, NO_FLAGS, NUMBER_MAX, is_large_enough, least_kept
from orcalike.transport.layers.base cimport Core, Layer
from orcalike.transport.total.member_acks cimport MemberAcks
from orcalike.transport.total.packets cimport Packet, Packets, body_of
from orcalike.transport.total.retransmit_buffer cimport RetransmitBuffer
from orcalike.transport.wire.message cimport Message

cdef enum:
    UNACKED_MAX = 524288        # bytes: what is let go so soon is still in the cache when it is used again


cdef class Order(Layer):
    """A layer that keeps numbered packets and hands them up in their order."""

    def __init__(self, Core core, Py_ssize_t packets, Py_ssize_t size):
        super().__init__(core)
        self.position = -1
        self.window_packets, self.window_bytes = packets, size
        self.unacked_packets, self.unacked_bytes = packets // 4, min(size // 4, <Py_ssize_t>UNACKED_MAX)
        self.buffer, self.acks, self.unordered = RetransmitBuffer(), MemberAcks(), Packets()
        self.lacking = frozenset()
        self.has_credit = True
        self.next = self.held = self.accepted = self.stable_mark = 1
        self.acked = self.seqno = self.floor = self.announced = 1

    cdef int needed(self, int degree) except -1:
        """How many members must hold a packet of this degree, the sequencer included; 0 for degree 0, which waits for none."""
        cdef int limit = max(self.replicas - 1, 0)
        cdef bint limited = self.was_reset or degree & AVAILABLE != 0
        degree &= NO_FLAGS
        if degree == 0:
            return 0
        if limited and limit < degree <= NUMBER_MAX:
            return limit + 1
        return 1 + (degree if degree <= NUMBER_MAX else number_of(degree, self.acks.count))

    cdef bint is_acceptable(self, int degree) except -1:
        """Whether this view has enough members with replicas for a degree (H2)."""
        return is_large_enough(self.replicas, degree, self.was_reset)

    def lacks_members(self):
        """Whether what was cast waits until the view has more members with replicas (H2)."""
        cdef Py_ssize_t i
        known = [self.unordered.at(i).degree | self.mode for i in range(self.unordered.count)]
        known += [self.buffer.at(i).degree for i in range(self.buffer.count)
                  if self.buffer.at(i).seqno >= self.accepted]
        return self.position >= 0 and not all([self.is_acceptable(degree) for degree in known])

    cdef int tell_degree(self) except -1:
        """R in H1, as far as it is kept in this view."""
        self.below.degree(least_kept(self.least, self.replicas, self.mode or self.was_reset))
        return 0

    cdef int settle(self) except -1:
        """Give no more numbers before all that has one is accepted, if this view has the members for that."""
        cdef Py_ssize_t i
        self.settles = True
        for i in range(self.buffer.count):
            if self.buffer.at(i).seqno >= self.accepted and not self.is_acceptable(self.buffer.at(i).degree):
                self.settles = False
        self.core.again(self)           # packets in the queue have their numbers, if they need wait no more
        return 0

    cdef bint is_settled(self) noexcept:
        """Whether nothing is tentative any more, and nothing else gets a number."""
        return self.settles and self.accepted == self.held and not self.frozen

    cdef int keep(self, Message message, Py_ssize_t size, int position, int degree, uint64_t counter,
                  uint64_t seqno, uint64_t stamp) except -1:
        """A packet is held from here on, until it is stable."""
        cdef Packet* held
        self.held = seqno + 1
        if stamp > self.stamp:
            self.stamp = stamp
        if position >= 0 and counter > self.acks.by_position[position].last:
            self.acks.by_position[position].last = counter
            if position == self.position and self.unordered.count:
                self.unordered.drop_first()
        # In a group of one no member will ask for it; then it only counts what is not applied yet.
        if (self.acks.count > 1 or self.accepted < seqno or not self.has_credit
                or self.buffer.count):      # it has no gaps
            held = self.buffer.put(message, size)
            held.position, held.degree = position, degree
            held.counter, held.seqno, held.stamp = counter, seqno, stamp
            self.buffer.bytes += size
        return 0

    cdef int deliver(self, Message message, int position, uint64_t seqno, uint64_t stamp) except -1:
        """Hand a packet up, in its final order."""
        self.core.mark("W11")
        self.next = seqno + 1
        self.unacked += message.size()
        if self.next - self.acked >= self.unacked_packets or self.unacked >= self.unacked_bytes:
            self.core.again(self)
        message.source = position
        message.seqno = seqno
        message.stamp = stamp
        self.above.up_cast(message)
        self.core.mark("W12")
        return 0

    cdef int deliver_accepted(self) except -1:
        """Hand up what is accepted and was waiting for that."""
        cdef Packet* held
        while self.next < self.accepted and self.next < self.held:
            held = self.buffer.numbered(self.next)
            self.deliver(body_of(<Message>held.message, held.size), held.position, held.seqno, held.stamp)
        return 0

    cdef int trim(self, uint64_t stable) except -1:
        """All members hold what is below `stable`: it is kept no longer, once it is applied here.

        The sequencer keeps it until it is applied everywhere, and so counts what is under way.
        """
        cdef uint64_t floor
        if stable > self.stable_mark:
            self.stable_mark = stable
        floor = min(self.stable_mark, self.next)
        if self.position == 0:
            floor = min(floor, self.floor)
        self.buffer.trim(floor)
        return 0

    cdef int check_positions(self) except -1:
        """Raise AssertionError unless the positions stand as `order.pxd` says."""
        cdef uint64_t first = self.held
        if self.buffer.count:
            first = self.buffer.at(0).seqno
        positions = {name: getattr(self, name) for name in ("next", "held", "accepted", "seqno")}
        positions |= {"acked": self.acked, "floor": self.floor, "announced": self.announced,
                      "first": first, "position": self.position, "frozen": self.frozen}
        if self.position < 0:
            return 0
        if not (self.acked <= self.next <= self.accepted <= self.held):
            raise AssertionError(f"acked <= next <= accepted <= held: {positions}")
        if not (self.seqno <= self.held and self.floor <= self.next):
            raise AssertionError(f"seqno <= held, floor <= next: {positions}")
        if self.announced > self.accepted:
            raise AssertionError(f"announced <= accepted: {positions}")
        if self.position == 0 and not self.frozen and self.seqno != self.held:
            raise AssertionError(f"seqno is held at the sequencer: {positions}")
        if first + <uint64_t>self.buffer.count != self.held or first > self.next:
            raise AssertionError(f"the buffer is from next on, without gaps: {positions}")
        return 0
