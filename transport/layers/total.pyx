# cython: allow_none_for_extension_args=False
"""TOTAL: one order through a sequencer, by the PB method (Amoeba 3.1; active messages 3).

Promises: any two members deliver any two casts in the same order (A19), a member's own in the
order in which it cast them, each once. The sequencer is the first member of the view (A20, A23).

*PB* (A26): a member sends its packet to the sequencer as a REQUEST; the sequencer numbers it and
casts it as it is, ORDERED. A packet's counter is its sender's own number for it: the sequencer
numbers a packet only when its counter is the sender's next, so nothing is ordered twice (H5).

*Resilience* (A31, A32; H2, H3): a packet of degree r is tentative until r + 1 members
hold it and all before it. Members tell the sequencer what they hold; it counts any of them, so the
slowest does not matter, and its mark, below which all is accepted, rides on what it casts next or
goes by itself. A member that holds a packet of degree 1 knows of two holders: itself and the
sequencer. Nothing tentative is delivered anywhere, and what comes behind it waits. A packet whose
degree the view has too few members for stays with its sender; where the sender's group says
"available", or was reset, it goes, and MIN(r, members - 1) is its degree (Amoeba 3.1).

*History* (A30, H63): every member keeps what it holds until all members hold it; the mark of that rides
on ORDERED. When the view changes, a sender sends again, in order, what it has not seen ordered.

*Credit*: `expect`, the seqno that a member wants next, rides on its requests, and goes by itself
after a quarter of the window, or half a megabyte (A22). The sequencer gives no more numbers than a
window ahead of the slowest member; one that stays behind for `slow_timeout` is expelled (F17).

*Flush* (H62): from FLUSH to VIEW nothing is numbered, acknowledged or delivered. A report says what is
held and what is known to be accepted; the cut is the longest run that any member reports. What of it is
accepted is delivered before the view; the rest keeps its places, and is tentative until r + 1
members of the new view hold it (H12).
"""

from orcalike.transport.application_state import State
from orcalike.transport.errors import ProtocolError
from orcalike.transport.total.flush import Cut, Piece, Report
from orcalike.transport.view import resets_of

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from orcalike.transport.degree cimport AVAILABLE, NO_FLAGS
from orcalike.transport.layers.base cimport NEVER, Core
from orcalike.transport.total.header cimport (
    ACCEPT, COUNTER_AT, EXPECT, GONE, HEADER, HOLDS_AT, NUMBER_AT, ORDERED, OTHER, POSITION_AT, REQUEST, STABLE_AT,
    STAMP_AT, NON_MEMBER, TENTATIVE_AT, WHOLE_AT, degree_of, departed_position, kind_of, store_header,
)
from orcalike.transport.total.order cimport CHECKED, Order
from orcalike.transport.total.packets cimport Packet, body_of
from orcalike.transport.total.sequencer cimport Sequencer
from orcalike.transport.wire.bytes cimport load16, load32, load64, store32, store64
from orcalike.transport.wire.message cimport Message

@cython.final
cdef class Total(Order):
    """One order through a sequencer. `TOTAL(packets=N, bytes=N)` bounds what is under way."""

    name = "TOTAL"
    needs = frozenset({"VIEWS", "FIFO", "ANY_SIZE"})
    gives = frozenset({"TOTAL_ORDER"})

    def __init__(self, Core core, config, me, packets=1024, bytes=16777216):
        if packets < 4 or bytes < 1:
            raise ValueError("TOTAL needs a window of 4 packets and 1 byte at the least")
        super().__init__(core, packets, bytes)
        self.me = me
        self.slow = config.slow
        self.sequencer = Sequencer(self, config.slow)
        self.counters = {}

    # Downcalls.

    cpdef cast(self, Message message):
        """Cast in the total order; delivered here too, when its turn has come."""
        cdef Packet* sent = self.unordered.put(message, message.size())
        self.counter += 1
        sent.counter = self.counter
        sent.degree = message.degree
        if self.frozen or self.position < 0 or self.submitted + 1 != self.counter:
            return                      # it goes with the next view, or when others have gone
        if message.degree == 0 or self.is_acceptable(message.degree | self.mode):
            self.submit(self.counter, message.degree, message)

    cdef int submit(self, uint64_t counter, int degree, Message message) except -1:
        """Have a packet numbered: here, or by the sequencer."""
        cdef unsigned char* header
        if degree:
            degree |= self.mode
        self.submitted = counter
        if self.position == 0:
            self.sequencer.take(0, counter, degree, message, None)
        else:
            header = store_header(message, REQUEST, degree, self.position, counter, self.expected())
            store32(header + WHOLE_AT, self.is_whole())
            store64(header + HOLDS_AT, self.held)
            self.ack_due = False
            if self.deadline == NEVER:
                self.deadline = self.core.now + self.slow // 2
            self.core.mark("W1")
            self.below.send(message, (0,))
            self.core.mark("W2")
        return 0

    cdef int submit_more(self) except -1:
        """Send the pending packets, in order, as far as the view can accept it (H2)."""
        cdef Packet* sent
        cdef Py_ssize_t i
        while (i := self.submitted_count()) < self.unordered.count:     # some may have their numbers at once
            sent = self.unordered.at(i)
            if not self.is_acceptable(sent.degree | self.mode):
                break
            self.submit(sent.counter, sent.degree, body_of(<Message>sent.message, sent.size).copy())
        return 0

    cdef Py_ssize_t submitted_count(self) noexcept:
        """How many of the packets without a number were sent in this view: the first ones."""
        cdef Py_ssize_t i = 0
        while i < self.unordered.count and self.unordered.at(i).counter <= self.submitted:
            i += 1
        return i

    cpdef degree(self, int least):
        """`least` with AVAILABLE: what this member casts goes also if members are too few."""
        self.mode = least & AVAILABLE
        self.least = least & NO_FLAGS
        self.tell_degree()
        if self.position >= 0 and not self.frozen:
            self.submit_more()

    cpdef list unsent(self):
        # What went to the sequencer of an earlier view, and is not in the cut, never left.
        cdef Py_ssize_t i
        return [body_of(<Message>self.unordered.at(i).message, self.unordered.at(i).size)
                for i in range(self.submitted_count(), self.unordered.count)]

    cpdef lower(self, Message packet):
        cdef Py_ssize_t i
        cdef Message message
        cdef const unsigned char* where = packet.data()
        for i in range(self.submitted_count(), self.unordered.count):
            message = <Message>self.unordered.at(i).message
            if message.base <= where < message.base + message.stop:
                self.unordered.at(i).degree = packet.degree
        if self.position >= 0 and not self.frozen:
            self.submit_more()

    cpdef incomplete(self, object members):
        self.lacking = frozenset(members)
        if self.position < 0:
            return
        self.count_whole()
        self.sequencer.was_lacking |= not self.is_whole()
        if not self.frozen:
            self.submit_more()
            if self.position == 0:
                self.sequencer.accept_more()
            else:
                self.ack_due = True            # whether this member is one of them
                self.core.again(self)

    cdef int count_whole(self) except -1:
        """Whose word counts: members whose state is complete (H3, H9)."""
        cdef bint whole
        self.was_reset = resets_of(self.view.lineage) > 0
        self.replicas = 0
        for position, member in enumerate(self.view.members):
            whole = member.incarnation not in self.lacking
            self.acks.by_position[<int>position].whole = whole
            self.replicas += whole and not member.witness
        self.tell_degree()
        return 0

    cdef bint is_whole(self) noexcept:
        """Whether this member's own state is complete."""
        return self.position >= 0 and self.acks.by_position[self.position].whole

    cpdef credit(self, bint given):
        if given and not self.has_credit:
            self.deadline = NEVER       # others may have waited for this member alone
            self.core.again(self)
        self.has_credit = given

    cpdef proceed(self):
        """Tell the sequencer what is held and applied here, if nothing else has."""
        if self.position < 0 or self.frozen:
            return
        if self.position == 0:
            if self.has_credit:
                self.acks.by_position[0].expects = self.expected()
                self.sequencer.give_numbers()
            self.sequencer.announce()
        elif self.ack_due or self.has_credit and self.next != self.acked:
            self.report()
        if CHECKED:
            self.check_positions()

    cdef int report(self) except -1:
        cdef Message message = Message.new(0)
        cdef unsigned char* header = store_header(message, EXPECT, 0, self.position, 0, self.expected())
        self.ack_due = False
        store32(header + WHOLE_AT, self.is_whole())
        store64(header + HOLDS_AT, self.held)
        self.core.mark("W7")
        self.below.send(message, (0,))
        self.core.mark("W8")
        return 0

    cdef uint64_t expected(self) noexcept:
        """What this member expects next; what is delivered without credit does not count."""
        if self.has_credit:
            self.acked = self.next
            self.unacked = 0
        return self.acked

    cpdef expire(self):
        """What was waited for has not come: a member is too slow, or the sequencer hangs."""
        self.deadline = NEVER
        if self.position > 0:
            self.look_for_own()
        elif self.position == 0:
            self.sequencer.expel_slowest()

    cdef int look_for_own(self) except -1:
        """If the same packet of this member waits for its number as last time, the sequencer may hang."""
        cdef uint64_t first = 0
        if not self.frozen and self.unordered.count:
            first = self.unordered.at(0).counter
        if first == 0 or first > self.submitted:
            self.overdue = 0
            return 0
        self.deadline = self.core.now + self.slow // 2
        mbrship = self.below.focus("MBRSHIP")
        if first == self.overdue and mbrship is not None:
            mbrship.ask_leader()
        self.overdue = first
        return 0

    # What arrives.

    cpdef up_cast(self, Message message):
        """ORDERED or ACCEPT, from the sequencer."""
        cdef int source = message.source
        cdef unsigned char* header = message.pop(HEADER)
        if header is NULL or source != 0 or kind_of(header) not in (ORDERED, ACCEPT):
            raise ProtocolError("a cast that is not the sequencer's")
        elif kind_of(header) == ORDERED:
            self.arrived(message, header)
        elif load64(header + NUMBER_AT) > self.held:
            self.below.flush(())        # a link broke, and what was cast meanwhile is lost
        else:
            self.accepted = max(self.accepted, load64(header + NUMBER_AT))
            if not self.frozen:
                self.deliver_accepted()
                self.trim(load64(header + STABLE_AT))
        if CHECKED:
            self.check_positions()

    cdef int arrived(self, Message message, const unsigned char* header) except -1:
        """A packet with its number."""
        cdef int position = load16(header + POSITION_AT)
        cdef int degree = degree_of(header)
        cdef uint64_t counter = load64(header + COUNTER_AT)
        cdef uint64_t seqno = load64(header + NUMBER_AT)
        cdef uint64_t known = seqno + 1 - load32(header + TENTATIVE_AT)
        cdef uint64_t stamp = load64(header + STAMP_AT)
        cdef uint64_t stable = load64(header + STABLE_AT)
        cdef bint direct = not self.frozen and self.next == seqno
        cdef Message kept
        if seqno < self.held:
            return 0                    # it came by another way
        if seqno > self.held:
            self.below.flush(())        # a link broke, and what was cast meanwhile is lost
            return 0
        if position == GONE:
            position = self.position_of_departed(counter)
            counter = 0                 # it is counted nowhere any more; that was its sender
            why = "a packet of a non-member" if position == NON_MEMBER else None
        else:
            why = self.wrong(position, counter)
        if why is not None or known > seqno + 1:
            raise ProtocolError(why or f"packet {seqno} is accepted up to {known}")
        if position == self.position and self.held >= self.begun:
            kept = <Message>self.unordered.at(0).message    # the same bytes, which are here already
        else:
            kept = message.copy()
        self.core.mark("W6")
        self.keep(kept, message.size(), position, degree, counter, seqno, stamp)
        if known > self.accepted:
            self.accepted = known
        if self.frozen:
            self.check_cut()
            return 0
        if self.accepted == seqno and (degree == 0 or self.needed(degree)
                                       <= self.acks.by_position[0].whole + <int>self.is_whole()):
            self.accepted = seqno + 1   # the sequencer holds it, and this member does
        if degree or known <= seqno:
            self.ack_due = True
            self.core.again(self)
        if direct and self.accepted > seqno:
            self.deliver(message, position, seqno, stamp)
        else:
            self.deliver_accepted()
        self.trim(stable)
        return 0

    cdef str wrong(self, int position, uint64_t counter):
        """What cannot be right about a packet with its number; None if nothing is."""
        cdef uint64_t last
        if position >= self.acks.count:
            return f"a packet of member {position}, which is not in the view"
        if self.held < self.begun:
            return None                 # from before the view, and so counted already
        last = self.acks.by_position[position].last
        if counter != last + 1:
            return f"packet {counter} of member {position} after {last}"
        if position == self.position and (self.unordered.count == 0
                                    or self.unordered.at(0).counter != counter):
            return f"packet {counter} of this member, which it did not send"
        return None

    cpdef up_send(self, Message message):
        """REQUEST or EXPECT, to the sequencer; what else is sent is for the layers above."""
        cdef int source = message.source
        cdef unsigned char* header
        if message.size() and message.data()[0] == OTHER:
            message.pop(1)
            self.above.up_send(message)
            return
        header = message.pop(HEADER)
        if header is not NULL and kind_of(header) == ORDERED and source == 0:
            self.arrived(message, header)
        elif (header is NULL or kind_of(header) not in (REQUEST, EXPECT) or self.position != 0
                or not 0 <= source < self.acks.count):
            raise ProtocolError("a message that only the sequencer gets, or none at all")
        elif not self.frozen:           # else its sender repeats it in the next view
            if not self.acks.by_position[source].whole and load32(header + WHOLE_AT) == 1:
                self.acks.by_position[source].whole = True   # its own word comes before its place in the order
                self.sequencer.accept_more()
            self.sequencer.acknowledged(source, load64(header + NUMBER_AT), load64(header + HOLDS_AT))
            if kind_of(header) == REQUEST:
                self.sequencer.take(source, load64(header + COUNTER_AT), degree_of(header),
                                    message.copy(), message)
        if CHECKED:
            self.check_positions()

    cpdef send(self, Message message, tuple members):
        if self.after is None:          # else it is lost, as all that is under way at a change of view
            message.push(1)[0] = OTHER
            self.below.send(message, members)

    cpdef flush(self, object failed):
        if self.after is not None:      # the layers below have the view to come
            there = [self.after.position(self.view.members[position].incarnation) for position in failed]
            failed = tuple([position for position in there if position >= 0])
            if not failed:
                return
        self.below.flush(failed)

    # The change of view.

    cpdef up_flush(self, object failed):
        """Freeze, and report what is held."""
        self.frozen = True
        self.deadline = NEVER
        self.sequencer.queue.clear()
        self.below.flush_ok(self.up_held())

    cpdef bytes up_held(self):
        return Report(self.held, self.accepted).pack()

    cpdef list up_missing(self, bytes report, bint before):
        """The packets from the first that is not held there, each with its sender and marks."""
        cdef uint64_t theirs = Report.unpack(report).held
        cdef Packet* held
        cdef Py_ssize_t i
        pieces = []
        for i in range(self.buffer.count):
            held = self.buffer.at(i)
            if held.seqno >= theirs and (not before or held.seqno < self.begun):
                pieces.append(Piece(held.seqno, self.sender_of(held).incarnation, held.counter,
                                    held.degree, held.stamp,
                                    body_of(<Message>held.message, held.size).body).pack())
        return pieces

    cpdef up_check(self, object report, object cut):
        if report is not None:
            Report.unpack(report)
        if cut is not None:
            Cut.unpack(cut)

    cdef object sender_of(self, Packet* held):
        """The member that cast a packet."""
        return self.buffer.sender(held, self.view, self.core.departed)

    def position_of_departed(self, incarnation):
        """Where in `core.departed` a sender stands, as a position; NON_MEMBER if it does not."""
        for i, member in enumerate(self.core.departed):
            if member.incarnation == incarnation:
                return departed_position(<int>i)
        return NON_MEMBER

    cpdef up_supply(self, bytes piece):
        """A packet that was missing here."""
        cdef int position
        it = Piece.unpack(piece)
        if it.seqno != self.held or self.view is None:
            return                      # it came by another way too
        position = self.view.position(it.sender)
        if position < 0:
            position = self.position_of_departed(it.sender)
            if position == NON_MEMBER:
                raise ProtocolError("a packet of a non-member was sent along")
        elif (why := self.wrong(position, it.counter)) is not None:
            raise ProtocolError(why)
        self.keep(Message(it.body), len(it.body), position, it.degree, it.counter, it.seqno, it.stamp)
        self.check_cut()

    cpdef bytes up_flush_ok(self, dict reports, object view, bint ends):
        """The cut: the longest run that any member holds, and what a joiner must know to go on.

        Where the state `ends`, so does what is tentative: no member with state is left to apply it.
        """
        cdef uint64_t last = self.held
        cdef uint64_t mark = self.accepted
        cdef Py_ssize_t i
        for report in reports.values():
            mark = max(mark, Report.unpack(report).accepted)
        mark = min(mark, last)
        if ends:
            last = mark
        self.note_counters()
        senders = [self.sender_of(self.buffer.at(i)) for i in range(self.buffer.count)
                   if mark <= self.buffer.at(i).seqno < last]
        return Cut(last, mark, self.stamp, self.counters, tuple(senders)).pack()

    cpdef int up_has_state(self):
        """A joiner that lacks what was tentative before its view has not all: it may have been delivered elsewhere."""
        cdef int state = self.above.up_has_state()
        if state == State.WHOLE and self.view is not None and self.held < self.begun:
            return State.BEHIND
        return state

    cpdef bint up_cut(self, bytes cut):
        cdef uint64_t last = Cut.unpack(cut).last
        if self.view is not None and self.held < last:
            self.cut = last
            return False
        return True

    cdef check_cut(self):
        if self.cut and self.held >= self.cut:
            self.cut = 0
            self.below.holds()

    def note_counters(self):
        """The duplicate table, by incarnation (H5)."""
        if self.view is not None:
            for position, member in enumerate(self.view.members):
                self.counters[member.incarnation] = self.acks.by_position[<int>position].last

    cpdef up_view(self, object view, bytes cut):
        """Deliver the rest of the old view, begin the new one, and repeat what is unordered."""
        before = self.view
        if cut:
            it = Cut.unpack(cut)
            self.begun = it.last
            if before is None:          # a joiner begins where the view begins
                self.next = self.held = self.accepted = it.mark
                self.stamp, self.counters = it.stamp, it.counters
                self.core.departed = it.senders
            else:
                self.end_view(it, view)
                self.counters = it.counters
        self.view = view
        self.position = view.position(self.me.incarnation)
        if self.position < 0:
            return
        self.keep_pace()
        self.settle_in(before, view)
        self.above.up_view(view, cut)
        self.resume(before)
        if CHECKED:
            self.check_positions()

    cdef int end_view(self, object it, object view) except -1:
        """Deliver the rest of the old view."""
        # What was delivered stays so: a cut that says less was not made of all the reports.
        self.fall_back_to(max(it.last, self.next))
        self.accepted = min(max(it.mark, self.next), self.held)
        self.after = view
        try:
            self.deliver_accepted()
        finally:
            self.after = None
        return 0

    cpdef list hand_over(self, object view, object it):
        """Deliver the rest, and let another order follow; returns what has no place in this one, to be cast there."""
        cdef Packet* sent
        cdef Py_ssize_t i
        cdef uint64_t last = 0
        cdef list left = []
        if self.view is not None:
            self.end_view(it, view)
            last = it.counters.get(self.me.incarnation, 0)
        for i in range(self.unordered.count):
            sent = self.unordered.at(i)
            if sent.counter > last:
                left.append(body_of(<Message>sent.message, sent.size).copy())
                (<Message>left[len(left) - 1]).degree = <uint8_t>sent.degree
        self.position, self.frozen = -1, True
        self.deadline = NEVER
        return left

    cdef int keep_pace(self) except -1:
        """A sequencer goes on from the clock of the one before, if that was ahead.

        Else time would stand still in the group until its own clock is there, for hours perhaps.
        """
        cdef int64_t ahead = <int64_t>self.stamp - self.core.wall
        if self.position == 0 and ahead > 0:
            self.core.epoch += ahead
        return 0

    cdef int fall_back_to(self, uint64_t last) except -1:
        """What is held beyond the cut has no place in the order: its senders send it again."""
        cdef Packet* held
        cdef Packet* sent
        while self.held > last and self.buffer.count:
            held = self.buffer.at(self.buffer.count - 1)
            self.held = held.seqno
            if held.position == self.position:
                sent = self.unordered.put_first(<Message>held.message, held.size)
                sent.counter, sent.degree = held.counter, held.degree & NO_FLAGS
            self.buffer.bytes -= held.size
            self.buffer.drop_last()
        return 0

    cdef int settle_in(self, object before, object view) except -1:
        """Begin a view: no member has said anything in it yet."""
        if before is not None:
            self.core.departed = self.buffer.move(before, view, self.core.departed)
        self.counters = {member.incarnation: self.counters.get(member.incarnation, 0)
                         for member in view.members}
        self.acks.begin(list(self.counters.values()), self.next)
        self.submitted = self.acks.by_position[self.position].last
        while self.unordered.count and self.unordered.at(0).counter <= self.submitted:
            self.unordered.drop_first()
        self.seqno = self.held
        self.floor = self.acked = self.next
        self.announced = self.accepted
        self.sequencer.announces = self.accepted < self.held
        self.settles = False
        self.sequencer.was_lacking = False
        self.unacked = self.cut = 0
        if self.acks.count == 1:
            self.trim(self.next)
        self.lacking = frozenset()
        self.count_whole()
        self.begins = self.next, self.held
        return 0

    cdef int resume(self, object before) except -1:
        """Pass on what is tentative, send again what is not ordered, and say what is held."""
        cdef Packet* held
        cdef Py_ssize_t i
        cdef Message message
        self.frozen = False
        self.ack_due = self.position > 0
        self.core.again(self)
        if self.position == 0:
            new = tuple([position for position, member in enumerate(self.view.members)
                         if position and (before is None or before.position(member.incarnation) < 0)])
            for i in range(self.buffer.count):
                held = self.buffer.at(i)
                if held.seqno >= self.next and new:
                    message = body_of(<Message>held.message, held.size).copy()
                    self.store_ordered(message, held)
                    self.below.send(message, new)
            if self.acks.count == 1:
                self.sequencer.accept_more()
                self.trim(self.next)    # no other will say that it holds that
        self.submit_more()
        return 0

    cdef int store_ordered(self, Message message, Packet* held) except -1:
        """The header of a packet that has its number since the view before."""
        if held.position < 0:
            store_header(message, ORDERED, held.degree, GONE, self.sender_of(held).incarnation,
                         held.seqno)
        else:
            store_header(message, ORDERED, held.degree, held.position, held.counter, held.seqno)
        store32(message.data() + TENTATIVE_AT, <uint32_t>(held.seqno + 1 - self.accepted))
        store64(message.data() + STAMP_AT, held.stamp)
        store64(message.data() + STABLE_AT, self.stable_mark)
        return 0

    cpdef dict dump(self):
        return {"next": self.next, "held": self.held, "accepted": self.accepted,
                "stable": self.stable_mark, "unordered": self.unordered.count,
                "history": self.buffer.count, "queue": self.sequencer.queue.count,
                "kept": self.buffer.bytes}
