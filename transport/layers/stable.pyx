# cython: allow_none_for_extension_args=False
"""STABLE: which members have seen which messages (Horus 4.4: H66 to H69).

Promises: the stability matrix. Entry (i, j) is how many messages of member i member j has seen, as
far as is known here; it is never more than there are. What "seen" means is the application's
business (H66): it says so with the downcall `ack`, of a message that it has seen with all before
it in the order. In a packet the last message counts.

A report is one seqno, up to which a member has seen everything: the order is the same at all, so
how much of that each member sent, each knows by itself. It rides on the member's next cast; if
there is none in the same input it goes by itself (H69). A change of view may lose reports, so each
member repeats its own then. The matrix is handed up by `up_stable` when it has changed.

Rows and columns are those of the members with replicas. A joiner has seen nothing until its
state is complete, and all up to its view from then on: the numbers come with the state, so this
layer stands above XFER. Of messages that some member has not seen the layer remembers `window`
packets; a member that is further behind than that keeps the column that it had until it has come closer.
"""

from collections import deque

import msgpack

from orcalike.transport.errors import ProtocolError
from orcalike.transport.wire.control import unpack
from orcalike.transport.stability import Stability

from libc.stdint cimport uint64_t

from orcalike.transport.layers.base cimport Core, Layer
from orcalike.transport.wire.bytes cimport load32, load64, store32, store64
from orcalike.transport.wire.message cimport NO_MESSAGES, Message

cdef enum:
    HEADER = 12             # of a cast: its sender has seen all up to (8), messages in it (4)
    # What is sent to one member or some: a byte, and in a report that seqno (8).
    OTHER = 0               # not this layer's
    REPORT = 1
    ASK = 2                 # a report, from a member that wants to have one
    REPORT_SIZE = 9

cdef uint64_t SEQNO_MAX = 1ull << 63


cdef class Matrix:
    """The stability matrix, as one member keeps it."""

    def __init__(self, window=8192):
        if window < 1:
            raise ValueError("STABLE needs a window of 1 packet at the least")
        self.window = window
        self.members = ()
        self.acked = {}
        self.counts = {}
        self.order = deque()
        self.late = {}

    def install(self, view):
        """The rows and columns are those of `view` from here on."""
        self.members = view.replicas
        present = [member.incarnation for member in self.members]
        for member in present:
            if member not in self.acked and self.delivered:
                self.late[member] = {}          # it has nothing yet of what there is
        self.acked = {member: self.acked.get(member, 0) for member in present}
        self.counts = {member: self.counts.get(member, 0) for member in present}
        self.late = {member: column for member, column in self.late.items() if member in self.acked}
        self.order = deque([entry for entry in self.order if entry[1] in self.counts])
        self.settle(self.delivered)

    def restore(self, delivered, counts):
        """Begin with the state of a group in which so much was delivered."""
        self.delivered = self.floor = delivered
        self.counts = counts

    cdef int deliver(self, uint64_t seqno, object sender, uint64_t messages) except -1:
        """So many messages of a sender were delivered here."""
        self.delivered = seqno
        if sender in self.counts:
            self.order.append((seqno, sender, messages))
            if len(self.order) > self.window:
                self.count_oldest()
        return 0

    cdef bint note(self, object member, uint64_t seqno) except -1:
        """A member has seen all up to there; whether that is news."""
        known = self.acked.get(member)
        if known is None or seqno <= <uint64_t>known:
            return False
        self.acked[member] = seqno
        if member in self.late and seqno >= self.floor:
            del self.late[member]
        if self.order and <uint64_t>known < <uint64_t>self.order[0][0]:
            self.settle(seqno)
        return True

    cdef int settle(self, uint64_t seqno) except -1:
        """What all have seen, up to that seqno at the most, need not be remembered."""
        for member, seen in self.acked.items():
            if <uint64_t>seen < seqno and member not in self.late:
                seqno = seen
        while self.order and <uint64_t>self.order[0][0] <= seqno:
            self.count_oldest()
        return 0

    cdef int count_oldest(self) except -1:
        """Forget the place of the oldest packet; a member that has not seen it is late from here on."""
        seqno, sender, messages = self.order.popleft()
        for member, seen in self.acked.items():
            if <uint64_t>seen < <uint64_t>seqno and member not in self.late:
                self.late[member] = self.counts.copy()
        self.counts[sender] += messages
        self.floor = seqno
        return 0

    cdef dict column(self, object member):
        """By sender, how many messages that member has seen."""
        if member in self.late:
            return self.late[member]
        seen = self.acked[member]
        counts = self.counts.copy()
        for seqno, sender, messages in self.order:
            if seqno > seen:
                break
            counts[sender] += messages
        return counts

    cdef dict totals(self):
        """By sender, how many messages were delivered here."""
        counts = self.counts.copy()
        for _, sender, messages in self.order:
            counts[sender] += messages
        return counts

    def reached(self, k):
        """Up to which seqno `k` members have seen everything."""
        seen = sorted(self.acked.values())
        return seen[-k] if 0 < k <= len(seen) else 0

    def stability(self):
        """What it shows now."""
        columns = [self.column(member.incarnation) for member in self.members]
        return Stability(self.members, tuple([
            tuple([column.get(member.incarnation, 0) for column in columns])
            for member in self.members]))


cdef class Stable(Layer):
    """Which members have seen which messages. `STABLE(window=N)` bounds the packets that it remembers."""

    name = "STABLE"
    needs = frozenset({"VIEWS", "TOTAL_ORDER", "STATE"})
    gives = frozenset({"STABILITY"})

    def __init__(self, Core core, config, me, window=8192):
        super().__init__(core)
        self.matrix = Matrix(window)
        self.others = ()

    # Downcalls.

    cpdef cast(self, Message message):
        cdef unsigned char* header = message.push(HEADER)
        store64(header, self.own)
        store32(header + 8, 0 if message.count == NO_MESSAGES else message.count or 1)
        self.reported = self.own
        self.below.cast(message)

    cpdef list unsent(self):
        return [message for message in self.below.unsent()
                if (<Message>message).pop(HEADER) is not NULL]

    cpdef send(self, Message message, tuple members):
        message.push(1)[0] = OTHER
        self.below.send(message, members)

    cpdef ack(self, Message message):
        """The application has seen `message`, and all before it."""
        cdef uint64_t seqno = min(message.seqno, self.matrix.delivered)
        if seqno > self.own and not self.core.me.witness:
            self.own = seqno
            self.learn(self.core.me.incarnation, seqno)

    cdef int learn(self, object member, uint64_t seqno) except -1:
        """A member has seen all up to there."""
        if self.matrix.note(member, seqno):
            self.changed = True
            self.core.again(self)
        return 0

    cpdef proceed(self):
        """Hand the matrix up, and report to the others, if no cast of this input has."""
        if self.core.todo is not None and not self.yields:
            self.yields = True
            self.core.again_last(self)
            return
        self.yields = False
        if self.changed:
            self.changed = False
            self.above.up_stable(self.matrix)
        if self.asks or self.own > self.reported:
            self.report(ASK if self.asks else REPORT, self.others)
            self.reported = self.own
            self.asks = False

    cdef int report(self, int kind, tuple positions) except -1:
        cdef Message message
        cdef unsigned char* header
        if positions:
            message = Message.new(0)
            header = message.push(REPORT_SIZE)
            header[0] = <unsigned char>kind
            store64(header + 1, self.own)
            self.below.send(message, positions)
        return 0

    # Upcalls.

    cpdef up_cast(self, Message message):
        cdef unsigned char* header = message.pop(HEADER)
        if header is NULL:
            self.above.up_system_error(f"member {message.source}: a cast without a report")
            if message.source >= 0:
                self.below.flush((message.source,))
            return
        # A member that has left since has no row: what it had seen does not count any more.
        sender = self.senders[message.source] if message.source >= 0 else None
        self.matrix.deliver(message.seqno, sender, load32(header + 8))
        self.learn(sender, load64(header))
        self.above.up_cast(message)

    cpdef up_send(self, Message message):
        cdef int kind = message.data()[0] if message.size() else ASK + 1
        if kind == OTHER:
            message.pop(1)
            self.above.up_send(message)
        elif message.size() != REPORT_SIZE or kind > ASK:
            raise ProtocolError("a message of no kind for STABLE")
        elif self.view is not None:     # a joiner asks when it is in
            self.learn(self.senders[message.source], load64(message.data() + 1))
            if kind == ASK:
                self.report(REPORT, (message.source,))

    cpdef up_view(self, object view, bytes cut):
        me = self.core.me
        is_in = view.position(me.incarnation) >= 0
        if is_in or self.view is None:  # of the time before this member, if it is not in: a witness has kept that
            self.senders = [member.incarnation for member in view.members]
            self.matrix.install(view)
        if is_in:
            self.asks = self.view is None and not me.witness
            self.view = view
            self.others = () if me.witness else tuple([
                position for position, member in enumerate(view.members)
                if not member.witness and member.incarnation != me.incarnation])
            self.matrix.note(me.incarnation, self.own)
            self.reported = 0
            self.changed = True
            self.core.again(self)
        self.above.up_view(view, cut)

    cpdef object up_give_state(self):
        totals = self.matrix.totals()
        piece = msgpack.packb([self.matrix.delivered, list(totals.items())])
        return Pieces(piece, self.above.up_give_state())

    cpdef up_begin_state(self):
        self.restored = False
        self.above.up_begin_state()

    cpdef up_take_state(self, bytes piece):
        if self.restored:
            self.above.up_take_state(piece)
            return
        self.restored = True
        delivered, counts = unpack_state(piece)
        self.matrix.restore(delivered, counts)
        self.own = delivered

    cpdef dict dump(self):
        return {"matrix": self.matrix.stability().matrix, "seen": self.own, "reported": self.reported,
                "delivered": self.matrix.delivered, "remembered": len(self.matrix.order)}


class Pieces:
    """One piece of state, then those of another iterator."""

    def __init__(self, first, others):
        self._first = first
        self._others = others

    def __iter__(self):
        return self

    def __next__(self):
        if self._first is None:
            return next(self._others)
        first, self._first = self._first, None
        return first

    def close(self):
        """No more is wanted."""
        close = getattr(self._others, "close", None)
        if close is not None:
            close()


cdef tuple unpack_state(bytes piece):
    """(seqno of the newest message, messages by sender); raises ProtocolError."""
    match unpack(piece, "a state of STABLE's", depth=3):
        case [int(delivered), [*pairs]] if 0 <= delivered < SEQNO_MAX:
            if all(isinstance(pair, list) and len(pair) == 2
                   and all(isinstance(field, int) and 0 <= field < 1 << 64 for field in pair)
                   for pair in pairs):
                return delivered, dict(pairs)
    raise ProtocolError("state that does not begin with STABLE's")
