# cython: allow_none_for_extension_args=False
"""The sequencer: it numbers packets, counts their holders, and says what is accepted (A20, A23, A31).

Each member has one; only that of the first member of the view is asked. It gives no more numbers
than a window ahead of the slowest member; a member that stays behind for `slow_timeout` is expelled
(F17).
"""

from orcalike.transport.errors import ProtocolError

from libc.stdint cimport int64_t, uint32_t, uint64_t

cimport cython

from orcalike.transport.layers.base cimport NEVER
from orcalike.transport.total.header cimport (
    ACCEPT, ORDERED, STABLE_AT, STAMP_AT, TENTATIVE_AT, store_header,
)
from orcalike.transport.total.member_acks cimport Standing
from orcalike.transport.total.order cimport Order
from orcalike.transport.total.packets cimport Packet, Packets, body_of
from orcalike.transport.wire.bytes cimport store32, store64
from orcalike.transport.wire.message cimport Message


cdef inline bint has_room(Order order, Py_ssize_t size) noexcept:
    """Whether a packet of `size` bytes may be numbered, by the credit of the slowest member.

    Members tell what they have applied after a quarter of the window at the latest: beyond that
    they will, up to that a packet goes whatever its size. Where another order follows, none does.
    """
    return (not order.settles and order.seqno - order.floor < <uint64_t>order.window_packets
            and order.buffer.count < order.window_packets
            and (order.buffer.bytes + size <= order.window_bytes
                 or order.buffer.bytes <= order.window_bytes // 4))


cdef inline bint raise_floor(Order order) noexcept:
    """Go by what the slowest member has applied by now; says whether that is more."""
    cdef uint64_t slowest = order.acks.least_expected()
    if order.floor >= slowest:
        return False
    order.deadline = NEVER
    order.floor = slowest
    return True


@cython.final
cdef class Sequencer:
    """Numbers the packets of a view."""

    def __init__(self, Order order not None, slow):
        self.order = order
        self.slow = slow
        self.queue = Packets()

    cdef int take(self, int position, uint64_t counter, int degree, Message message, Message body) except -1:
        """A packet to number: at once where there is credit, else in its turn.

        `body` is what it was copied from, valid during this input; None if there is no such message.
        """
        cdef Packet* waits
        if counter <= self.order.acks.by_position[position].last:
            return 0                    # numbered already
        if self.queue.count or not has_room(self.order, message.size()):
            self.order.acks.make_wait(position, message.size())
            waits = self.queue.put(message, message.size())
            waits.position, waits.counter, waits.degree = position, counter, degree
            self.give_numbers()
        else:
            self.number(position, counter, degree, message, body)
        return 0

    cdef int give_numbers(self) except -1:
        """Number the pending packets, as far as the slowest member's credit goes."""
        cdef Order order = self.order
        cdef Packet waits
        cdef Message message
        if raise_floor(order):
            order.trim(order.next if order.acks.count == 1 else order.stable_mark)
        while self.queue.count:
            waits = self.queue.at(0)[0]
            if not has_room(order, waits.size):
                break
            message = <Message>waits.message
            self.queue.drop_first()
            order.acks.let_go(waits.position, waits.size)
            self.number(waits.position, waits.counter, waits.degree, message, None)
        if self.queue.count and order.deadline == NEVER:
            order.deadline = order.core.now + self.slow
        return 0

    cdef int expel_slowest(self) except -1:
        """Members have held up all others for `slow_timeout`: the group goes on without them."""
        cdef Order order = self.order
        cdef uint64_t slowest = order.acks.least_expected()
        cdef uint64_t least = order.acks.least_held()
        cdef Standing* standing
        cdef list behind = []
        # Without credit it is this member itself that all wait for.
        if order.has_credit and not order.frozen and self.queue.count:
            for position in range(1, order.acks.count):
                standing = &order.acks.by_position[position]
                if standing.holds == least or standing.expects == slowest and not order.settles:
                    behind.append(position)
            order.below.flush(behind)
        return 0

    cdef int number(self, int position, uint64_t counter, int degree, Message message, Message body) except -1:
        """Give one packet its seqno, cast it as it is, and deliver it here where it is accepted."""
        cdef Order order = self.order
        cdef Py_ssize_t size = message.size()
        cdef uint64_t seqno = order.seqno
        cdef int here = order.acks.by_position[0].whole
        cdef bint settled = order.accepted == seqno and (degree == 0 or order.needed(degree) <= here)
        cdef uint64_t last = order.acks.by_position[position].last
        cdef unsigned char* header
        if counter != last + 1:
            if counter > last:
                order.below.flush(())
            return 0                    # perhaps a link broke: it sends them again in the next view
        order.core.mark("W3")
        order.seqno += 1
        if order.core.wall > <int64_t>order.stamp:
            order.stamp = order.core.wall
        if settled:
            order.accepted = seqno + 1
        elif order.needed(degree) > 2 or order.lacking or self.was_lacking:
            self.announces = True       # members cannot know it by themselves
        order.core.mark("W4")
        order.keep(message, size, position, degree, counter, seqno, order.stamp)
        if order.acks.count > 1:
            header = store_header(message, ORDERED, degree, position, counter, seqno)
            store32(header + TENTATIVE_AT, <uint32_t>(seqno + 1 - order.accepted))
            store64(header + STAMP_AT, order.stamp)
            store64(header + STABLE_AT, order.stable_mark)
            order.announced = order.accepted
            order.below.cast(message)
            order.core.mark("W5")
        if settled and order.next == seqno:     # else it comes after what is being delivered
            if body is None:            # the headers may have taken more than the headroom: it lies elsewhere now
                body = body_of(message, size)
            order.deliver(body, position, seqno, order.stamp)
            if order.has_credit:
                order.acks.by_position[0].expects = order.next
        return 0

    cdef int acknowledged(self, int position, uint64_t expect, uint64_t holds) except -1:
        """A member says what it expects and what it holds."""
        cdef Order order = self.order
        cdef Standing* standing = &order.acks.by_position[position]
        cdef uint64_t held = standing.holds
        cdef uint64_t expected = standing.expects
        cdef uint64_t stable = order.stable_mark
        cdef bint moved = False
        if expect > order.seqno or holds > order.seqno:
            raise ProtocolError(f"it knows of packet {max(expect, holds)}; {order.seqno} is the next")
        if holds > held:
            standing.holds = holds
            if held <= stable:          # it may have been the only one so far behind
                stable = order.acks.least_held()
                moved = True
        if expect > expected:
            standing.expects = expect
            if expected <= order.floor and raise_floor(order):
                moved = True
        if moved:
            order.trim(stable)
        if self.queue.count:
            self.give_numbers()
        if holds > held and order.accepted < order.held:
            self.accept_more()
        return 0

    cdef int accept_more(self) except -1:
        """Accept, in order, what has enough holders now; any members will do (H2)."""
        cdef Order order = self.order
        cdef Packet* held
        cdef uint64_t before = order.accepted
        while order.accepted < order.held:
            held = order.buffer.numbered(order.accepted)
            if order.acks.holders(held.seqno) < order.needed(held.degree):
                break
            order.accepted += 1
        if order.accepted > before:
            order.core.mark("W9")
            if self.announces:
                order.core.again(order)
            order.deliver_accepted()
            order.trim(order.stable_mark)
            if order.has_credit:
                order.acks.by_position[0].expects = order.next
                self.give_numbers()
        return 0

    cdef int announce(self) except -1:
        """Say what is accepted, where nothing else has said it and a member waits for it."""
        cdef Order order = self.order
        cdef Message message
        cdef unsigned char* header
        if self.announces and order.accepted > order.announced:
            order.announced = order.accepted
            self.announces = order.accepted < order.held or bool(order.lacking)
            message = Message.new(0)
            header = store_header(message, ACCEPT, 0, 0, 0, order.accepted)
            store64(header + STABLE_AT, order.stable_mark)
            order.below.cast(message)
            order.core.mark("W10")
        return 0
