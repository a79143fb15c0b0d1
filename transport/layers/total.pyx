"""TOTAL: one order through a sequencer, by the PB method (Amoeba 3.1; active messages 3).

Promises: any two members deliver any two casts in the same order (A19), a member's own in the
order in which it cast them, each once. The sequencer is the first member of the view (A20, A23).

*PB* (A26): a member sends its packet to the sequencer as a REQUEST; the sequencer numbers it and
casts it as it is, ORDERED. A packet's counter is its sender's own number for it: the sequencer
numbers a packet only when its counter is the sender's next, so nothing is ordered twice.

*History* (D13): a sender keeps what it sent until it is stable. When the view changes it sends
again, in order, what it has not seen ordered. The sequencer keeps nothing more than the others.

*Credit*: `expect`, the seqno that a member wants next, rides on its requests, and goes by itself
after a quarter of the window (A22). The sequencer gives no more numbers than a window ahead of the
slowest member; what waits at the sequencer is bounded by what each sender may have unordered.

*Flush* (H62): from FLUSH to VIEW nothing is numbered, acknowledged or delivered; what was numbered
before still arrives and is logged. The cut is the largest seqno that was given.
"""

from collections import deque

import msgpack

from orcalike.transport.errors import ProtocolError

from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.layers.base cimport Core, Layer
from orcalike.transport.wire.bytes cimport load16, load64, store16, store64
from orcalike.transport.wire.message cimport Message

cdef enum:
    REQUEST = 1
    ORDERED = 2
    EXPECT = 3
    OTHER = 4           # not TOTAL's: one byte, then what the layer above sent
    # kind (1), zero (1), sender's place (2), zero (4), counter (8), number (8), stamp (8), stable (8);
    # the number is the seqno of an ordered packet, and else what its sender expects.
    HEADER = 40

cdef uint64_t SEQNO_MAX = 1ull << 63


cdef class Total(Layer):
    """One order through a sequencer. `TOTAL(packets=N, bytes=N)` bounds what is under way."""

    name = "TOTAL"
    needs = frozenset({"VIEWS", "FIFO", "ANY_SIZE"})
    gives = frozenset({"TOTAL_ORDER"})

    def __init__(self, Core core, config, me, packets=1024, bytes=16777216):
        super().__init__(core)
        if packets < 4 or bytes < 1:
            raise ValueError("TOTAL needs a window of 4 packets and 1 byte at the least")
        self.me = me
        self.place = -1
        self.window_packets = packets
        self.window_bytes = bytes
        self.unordered = deque()
        self.ordered = deque()
        self.log = deque()
        self.queue = deque()
        self.sizes = deque()
        self.counters = {}
        self.last = []
        self.expect = []
        self.has_credit = True
        self.next = self.acked = self.seqno = self.floor = self.stable_mark = 1

    # Downcalls.

    cpdef cast(self, Message message):
        """Cast in the total order; delivered here too, when its turn has come."""
        cdef Sent sent = Sent.__new__(Sent)
        self.counter += 1
        sent.message = message
        sent.size = message.size()
        sent.counter = self.counter
        self.unordered.append(sent)
        if not self.frozen and self.place >= 0:
            self.submit(sent, message)  # else at the next view

    cdef int submit(self, Sent sent, Message message) except -1:
        """Have a packet numbered: here, or by the sequencer."""
        if self.place == 0:
            self.take(0, sent.counter, message)
        else:
            store_header(message, REQUEST, self.place, sent.counter, self.expected())
            self.below.send(message, (0,))
        return 0

    cpdef credit(self, bint given):
        self.has_credit = given
        if given:
            self.core.again(self)

    cpdef proceed(self):
        """Tell the sequencer what was delivered, where nothing else has told it."""
        cdef Message message
        if self.frozen or self.place < 0 or not self.has_credit:
            return
        if self.place == 0:
            self.expect[0] = self.next
            self.give_numbers()
        elif self.next != self.acked:
            message = Message.new(0)
            store_header(message, EXPECT, self.place, 0, self.expected())
            self.below.send(message, (0,))

    cdef uint64_t expected(self):
        """What this member expects next; what is delivered without credit does not count."""
        if self.has_credit:
            self.acked = self.next
            self.unacked = 0
        return self.acked

    # The sequencer.

    cdef int take(self, int place, uint64_t counter, Message message) except -1:
        """A packet to number: at once where there is credit, else in its turn."""
        if counter <= <uint64_t>self.last[place]:
            return 0                    # numbered already
        if self.queue or not self.has_room():
            self.queue.append((place, counter, message))
            self.give_numbers()
        else:
            self.number(place, counter, message)
        return 0

    cdef bint has_room(self):
        return (self.seqno - self.floor < <uint64_t>self.window_packets
                and self.unstable < self.window_bytes)

    cdef int give_numbers(self) except -1:
        """Number what waits, as far as the slowest member's credit goes."""
        cdef uint64_t slowest = min(self.expect)
        while self.floor < slowest and self.sizes:
            self.unstable -= self.sizes.popleft()
            self.floor += 1
        while self.queue and self.has_room():
            place, counter, message = self.queue.popleft()
            self.number(place, counter, message)
        return 0

    cdef int number(self, int place, uint64_t counter, Message message) except -1:
        """Give one packet its seqno, cast it as it is, and deliver it here."""
        cdef Message here = message
        cdef Py_ssize_t size = message.size()
        cdef uint64_t seqno = self.seqno
        if counter != <uint64_t>self.last[place] + 1:
            self.complain(place, f"it sent its packet {counter} after {self.last[place]}")
            return 0
        self.seqno += 1
        self.sizes.append(size)
        self.unstable += size
        if self.core.wall > <int64_t>self.stamp:
            self.stamp = self.core.wall
        if len(self.last) > 1:
            store_header(message, ORDERED, place, counter, seqno)
            store64(message.data() + 24, self.stamp)
            store64(message.data() + 32, self.floor)
            self.below.cast(message)
            # Where the headers took more than the headroom, the body lies elsewhere now.
            here = Message.view(message.base + message.stop - size, size)
        self.deliver(here, place, counter, seqno, self.floor)
        if self.has_credit:
            self.expect[0] = self.next
        return 0

    # Every member.

    cdef int deliver(self, Message message, int place, uint64_t counter, uint64_t seqno,
                     uint64_t stable) except -1:
        """Hand a packet up, in its final order."""
        cdef Sent sent
        self.next = seqno + 1
        self.unacked += message.size()
        self.last[place] = counter
        if place == self.place:
            sent = self.unordered.popleft()
            sent.seqno = seqno
            self.ordered.append(sent)
        if stable > self.stable_mark:
            self.stable_mark = stable
            while self.ordered and (<Sent>self.ordered[0]).seqno < stable:
                self.ordered.popleft()
        if (self.next - self.acked >= <uint64_t>self.window_packets // 4
                or self.unacked >= self.window_bytes // 4):
            self.core.again(self)
        message.source = place
        message.seqno = seqno
        message.stamp = self.stamp
        self.above.up_cast(message)
        return 0

    cpdef up_cast(self, Message message):
        """ORDERED, from the sequencer."""
        cdef int source = message.source
        cdef unsigned char* header = message.pop(HEADER)
        if header is NULL or header[0] != ORDERED or source != 0:
            self.complain(source, "a cast that is not an ordered packet of the sequencer")
        elif self.frozen:
            self.log.append((load64(header + 16), message.copy(), load_place(header),
                             load64(header + 8), load64(header + 24), load64(header + 32)))
            self.check_cut()
        else:
            self.arrived(message, load64(header + 16), load_place(header), load64(header + 8),
                         load64(header + 24), load64(header + 32))

    cdef int arrived(self, Message message, uint64_t seqno, int place, uint64_t counter,
                     uint64_t stamp, uint64_t stable) except -1:
        if seqno != self.next or place >= len(self.last):
            self.complain(0, f"packet {seqno} of member {place} where {self.next} is due")
            return 0
        if counter != <uint64_t>self.last[place] + 1:
            self.complain(0, f"packet {counter} of member {place} after {self.last[place]}")
            return 0
        if place == self.place and (not self.unordered
                                    or (<Sent>self.unordered[0]).counter != counter):
            self.complain(0, f"packet {counter} of this member, which it did not send")
            return 0
        self.stamp = stamp
        return self.deliver(message, place, counter, seqno, stable)

    cpdef up_send(self, Message message):
        """REQUEST or EXPECT, to the sequencer; what else is sent is for the layers above."""
        cdef int source = message.source
        cdef unsigned char* header
        if message.size() and message.data()[0] == OTHER:
            message.pop(1)
            self.above.up_send(message)
            return
        header = message.pop(HEADER)
        if header is NULL or header[0] not in (REQUEST, EXPECT) or self.place != 0:
            self.complain(source, "a message that only the sequencer gets, or none at all")
            return
        if self.frozen:
            return                      # its sender repeats it in the next view
        expect = load64(header + 16)
        if expect > self.seqno:
            self.complain(source, f"it expects {expect}, but {self.seqno} is not given yet")
            return
        if expect > <uint64_t>self.expect[source]:
            self.expect[source] = expect
            self.give_numbers()
        if header[0] == REQUEST:
            self.take(source, load64(header + 8), message.copy())

    cpdef send(self, Message message, tuple members):
        message.push(1)[0] = OTHER
        self.below.send(message, members)

    # The change of view.

    cpdef up_flush(self, object failed):
        """Freeze, and report what is held and, at the sequencer, what was numbered."""
        self.frozen = True
        self.queue.clear()
        self.below.flush_ok(msgpack.packb([self.next, self.seqno if self.place == 0 else 0]))

    cpdef bytes up_flush_ok(self, dict reports):
        """The cut: all that the sequencer numbered, and what a joiner must know to go on."""
        cdef uint64_t cut = self.next
        for report in reports.values():
            cut = max(cut, *unpack_report(report))
        self.note_counters()
        return msgpack.packb([cut, self.stamp, list(self.counters.items())])

    cpdef bint up_cut(self, bytes cut):
        cdef uint64_t last = unpack_cut(cut)[0]
        if self.view is not None and self.held() < last:
            self.cut = last
            return False
        return True

    cdef uint64_t held(self):
        return self.next + <uint64_t>len(self.log)

    cdef check_cut(self):
        if self.cut and self.held() >= self.cut:
            self.cut = 0
            self.below.holds()

    cdef note_counters(self):
        if self.view is not None:
            for member, counter in zip(self.view.members, self.last):
                self.counters[member.incarnation] = counter

    cpdef up_view(self, object view, bytes cut):
        """Deliver the rest of the old view, begin the new one, and repeat what is unordered."""
        cdef Sent sent
        for seqno, message, place, counter, stamp, stable in self.log:
            self.arrived(message, seqno, place, counter, stamp, stable)
        self.log.clear()
        self.note_counters()
        if self.view is None and cut:   # a joiner begins where the view begins
            self.next, self.stamp, self.counters = unpack_cut(cut)
        self.view = view
        self.place = view.place(self.me.incarnation)
        if self.place < 0:
            return
        self.counters = {member.incarnation: self.counters.get(member.incarnation, 0)
                         for member in view.members}
        self.last = list(self.counters.values())
        self.expect = [self.next] * len(self.last)
        self.seqno = self.floor = self.acked = self.stable_mark = self.next
        self.unacked = self.unstable = 0
        self.sizes.clear()
        self.ordered.clear()            # all of the old view is held by all who were in it
        self.frozen = False
        self.above.up_view(view, cut)
        for sent in list(self.unordered):
            self.submit(sent, body_of(sent))

    cdef complain(self, int place, str why):
        self.above.up_system_error(f"member {place}: {why}")

    cpdef dict dump(self):
        return {"next": self.next, "unordered": len(self.unordered), "history": len(self.ordered),
                "queue": len(self.queue), "unstable": self.unstable, "stable": self.stable_mark}


cdef int store_header(Message message, int kind, int place, uint64_t counter,
                      uint64_t number) except -1:
    cdef unsigned char* header = message.push(HEADER)
    header[0] = <unsigned char>kind
    header[1] = 0
    store16(header + 2, <unsigned short>place)
    store16(header + 4, 0)
    store16(header + 6, 0)
    store64(header + 8, counter)
    store64(header + 16, number)
    store64(header + 24, 0)
    store64(header + 32, 0)
    return 0


cdef object unpack_report(bytes report):
    """(held up to, numbered up to) of a member's report; raises ProtocolError."""
    match unpack(report):
        case [int(held), int(numbered)] if 0 <= held < SEQNO_MAX and 0 <= numbered < SEQNO_MAX:
            return held, numbered
    raise ProtocolError("a report that TOTAL did not make")


cdef object unpack_cut(bytes cut):
    """(cut, stamp, counter by incarnation); raises ProtocolError."""
    match unpack(cut):
        case [int(last), int(stamp), [*pairs]] if 0 < last < SEQNO_MAX and 0 <= stamp < SEQNO_MAX:
            counters = {}
            for pair in pairs:
                match pair:
                    case [int(incarnation), int(counter)] if 0 <= counter < SEQNO_MAX:
                        counters[incarnation] = counter
                    case _:
                        break
            else:
                return last, stamp, counters
    raise ProtocolError("a cut that TOTAL did not make")


cdef object unpack(bytes data):
    try:
        return msgpack.unpackb(data, max_ext_len=0)
    except Exception:
        raise ProtocolError("a report or cut that is not msgpack") from None


cdef inline int load_place(const unsigned char* header):
    return load16(header + 2)


cdef Message body_of(Sent sent):
    """The packet without the headers of the view in which it was sent first."""
    cdef Message whole = sent.message
    return Message.view(whole.base + whole.stop - sent.size, sent.size).copy()
