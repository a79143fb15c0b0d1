# cython: allow_none_for_extension_args=False
"""RING: one order in shared memory, where all members are on one host (Amoeba's migrating sequencer: A24).

Promises what TOTAL promises. A member writes its packet into its own lane, and swaps a word that leads to it
into the next slot of the order (transport/ring): from then on it is ordered, and all members hold it. None
hands out numbers. Only data go through memory; views are agreed on by MBRSHIP, over sockets.

*Views*: a member that is asked to flush puts a fence with the view's number into the order. The first one ends the
view for all: each member delivers all below it, and nothing above until VIEW; one that scans it, as each does
before it appends, appends no more. So all reports are equal, and nothing is missing anywhere.

*Beginning a view*: the cut says where the view has ended, and the rows; from it follows which row each member has next.
A member appends only when all others have mapped its memory (transport/drivers/mapped_order.pyx); one that cannot leaves.

*Large packets*, over a quarter of a lane, go in parts (transport/ring/incoming.pyx): others' packets come in between, and
a full lane waits for room in the middle of one.

*Fairness*: a member that writes much applies in each input as much of each other one as it writes. If it applied
all, those that are ahead would write on meanwhile, and stay ahead for good.

*Resilience*: what is in memory survives the death of any members but the last; so each degree that the view
has members for is met at once, and no degree is reported to MBRSHIP (H1: any member that is left holds all). A packet
whose degree it has too few members for waits, as on TOTAL.

*Waking*: others write to the alarm, a pipe in the driver's epoll set, if it is armed. It is armed at the end of an
input in which there was no news; after news this member looks again 1 ms later, and is not woken meanwhile, unless a
thread of its process waits for something. One that dozes on the futex of the order is woken by that, and the alarm
is not armed. A writer whose ring or lane is full tries again.

A member that is struck, as others have gone on without it, finds that out in memory before it hands up what they
may have overwritten: packets of others are copied first.
"""

from orcalike.transport.drivers.descriptors import Alarm
from orcalike.transport.drivers.mapped_order import REMEDY
from orcalike.transport.errors import DamagedMemory, ProtocolError
from orcalike.transport.ring.fence import Fence, begins_anew, fence_of, slot_of
from orcalike.transport.total.flush import SEQNO_MAX, Cut

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from orcalike.transport.degree cimport AVAILABLE
from orcalike.transport.drivers.ring_segment cimport (
    RING_FULL, RING_OUT, RING_ROWS, ring_append, ring_applied, ring_entry,
    ring_has_news, ring_is_in, ring_member, ring_next, ring_room,
)
from orcalike.transport.layers.base cimport NEVER, Core
from orcalike.transport.drivers.mapped_order cimport OFFER, OTHER, RING_FENCED, ring_append_fence
from orcalike.transport.ring.holders cimport Holders
from orcalike.transport.ring.incoming cimport AT_ONCE, LAST, MORE, PACKET_MAX, WHOLE, Incoming
from orcalike.transport.ring.fast cimport LANE_HEADER, MUCH
from orcalike.transport.ring.listening cimport ListeningOrder
from orcalike.transport.total.packets cimport body_of
from orcalike.transport.wire.bytes cimport load32, load64, store32, store64
from orcalike.transport.wire.message cimport Message
from orcalike.transport.wire.ring cimport Ring

cdef enum:
    ALL_OF_IT = -1
    INPUT_MOST = 16384              # bytes of others that one input delivers: sockets are looked at before the next


@cython.no_gc                           # a message refers to nothing
@cython.freelist(64)
cdef class Unordered:
    """A packet of this member that is not in the order yet."""


cdef Unordered unordered(Message message, Py_ssize_t size, Py_ssize_t sent):
    cdef Unordered made = Unordered.__new__(Unordered)
    made.message, made.size, made.sent = message, size, sent
    return made


@cython.final
cdef class SharedOrder(ListeningOrder):
    """One order in shared memory; `RING(slots=N, lane=N)`: packets under way, bytes of each member's. Powers of two."""

    name = "RING"
    needs = frozenset({"VIEWS", "FIFO", "ANY_SIZE", "ONE_HOST"})
    gives = frozenset({"TOTAL_ORDER"})

    def __init__(self, Core core, config, me, slots=65536, lane=1048576):
        super().__init__(core, config, me, slots, lane)
        self.unordered = Ring()
        self.incoming, self.holders = Incoming(), Holders()
        self.lacking = frozenset()
        self.stuck_at = NEVER

    @property
    def held(self):
        """As TOTAL's: all that is in the order is in memory, for each member that is attached."""
        return self.next if self.segment is None else SEQNO_MAX

    cpdef start(self):
        self.core.alarm = Alarm()
        self.core.ear = self

    # Downcalls.

    cpdef cast(self, Message message):
        """Cast in the total order: appended and delivered at once, unless something is in the way."""
        cdef Py_ssize_t size = message.size()
        cdef Py_ssize_t sent = 0
        if size > PACKET_MAX:
            raise ValueError(f"a packet of {size} bytes: {PACKET_MAX} are allowed")
        self.allow(size)
        if self.unordered.count:
            self.unordered.put(unordered(message, size, 0))
        elif (not self.may_cast() or message.degree and not self.holders.have_met(message.degree | self.mode)
                or not self.append(message, size, &sent)):
            self.unordered.put_first(unordered(message, size, sent))
            if not self.full_since:
                self.below.held_up()

    cdef int allow(self, Py_ssize_t written) noexcept:
        if self.input != self.core.inputs:
            self.input = self.core.inputs
            self.shares = self.core.now < self.busy_until and not self.core.is_awaited()
            self.allowed = 0 if self.shares else INPUT_MOST
        if written >= MUCH:
            self.allowed = self.allowed if self.shares else 0
            self.shares, self.busy_until = True, self.core.now + self.linger
        if self.shares:
            self.allowed += written * max(<Py_ssize_t>len(self.rows) - 1, 1)
        return 0

    cdef bint append(self, Message message, Py_ssize_t size, Py_ssize_t* sent) except -1:
        """Put a packet, behind what was `sent` of it, into the order, and deliver all up to it; False if there is no room.

        Where the order has ended it waits.
        """
        cdef unsigned char* own = NULL
        cdef Message placed
        cdef int found = 0
        self.core.mark("W1")
        while found == 0:
            found = self.put(message, size, sent, &own)
            if found == 0:
                self.full_since = 0
                self.spares &= message.spares
                self.appended = True
                self.core.schedule(self)
                if sent[0] == size:
                    self.core.mark("W3")
                    placed = None if own is NULL else self.take_own(own, size)
                    if placed is None:
                        self.drain()
                    else:
                        self.draining = True
                        try:
                            self.hand_up_placed(placed)
                        finally:
                            self.draining = False
                    return True
        if found == RING_FULL:
            return self.full() != 0
        self.unordered.put_first(unordered(message, size, sent[0]))     # a view may begin meanwhile, and has to find it
        self.below.held_up()
        self.drain(ALL_OF_IT)           # to where it says what is in the way
        return True

    cdef int put(self, Message message, Py_ssize_t whole, Py_ssize_t* sent, unsigned char** own) except NO_CODE:
        """Write a packet, or its next part, into the own lane, and append it: 0, or what is in the way. `own`: where it is if whole."""
        cdef ring_member* m = &self.segment.member
        cdef Py_ssize_t left = whole - sent[0]
        cdef uint32_t size = <uint32_t>min(left, <Py_ssize_t>m.packet_max - LANE_HEADER)
        cdef unsigned char* room = NULL
        cdef int64_t found = ring_room(m, size + LANE_HEADER, &room)
        if found == 0:
            memset(room, 0, 8)
            room[0] = message.degree
            if size < whole:
                room[1] = LAST if size == left else MORE
                store32(room + 4, <uint32_t>sent[0])
            store64(room + 8, <uint64_t>self.core.wall)
            memcpy(room + LANE_HEADER, message.base + message.stop - left, size)
            found = ring_append(m, size + LANE_HEADER, 1)
        if found < 0:
            return <int>found
        sent[0] += size
        if size == whole:
            own[0] = room
        return 0

    cdef int submit_more(self) except -1:
        """Append the packets of this member, in order, as far as the view has members for it (H2, H3)."""
        cdef Unordered packet
        while self.unordered.count and self.may_cast():
            packet = self.unordered.at(0)
            if packet.message.degree and not self.holders.have_met(packet.message.degree | self.mode):
                break
            self.unordered.take()       # what is delivered meanwhile may cast
            if not self.append(packet.message, packet.size, &packet.sent):
                self.unordered.put_first(packet)
                break
        return 0

    cpdef list unsent(self):
        cdef Unordered packet
        cdef list found = []
        for packet in self.unordered.all():
            if not packet.sent:         # else parts of it are there
                found.append(Message.view(packet.message.base + packet.message.stop - packet.size, packet.size))
                (<Message>found[len(found) - 1]).owner = packet.message
        return found

    cpdef lower(self, Message packet):
        cdef Unordered found
        for found in self.unordered.all():
            if found.message is packet.owner:
                found.message.degree = packet.degree
        self.core.again(self)

    cpdef send(self, Message message, tuple members):
        message.push(1)[0] = OTHER
        self.below.send(message, members)

    cpdef degree(self, int least):
        """As TOTAL: with AVAILABLE what this member casts goes also if members are too few."""
        self.mode = least & AVAILABLE
        self.core.again(self)

    cpdef incomplete(self, object members):
        self.lacking = frozenset(members)
        self.below.held_up()
        if self.position >= 0:
            self.holders.count(self.installed, self.lacking)
            self.core.again(self)

    def lacks_members(self):
        """Whether what was cast waits until the view has more members with replicas (H2)."""
        known = [(<Unordered>packet).message.degree | self.mode for packet in self.unordered.all()]
        return self.position >= 0 and not all([self.holders.suffice(degree) for degree in known])

    @property
    def replicas(self):
        """How many members with replicas count for resilience."""
        return self.holders.replicas

    cpdef object fast(self):
        return self, b""

    cpdef bint up_is_held_up(self):
        return (self.unordered.count > 0 or bool(self.lacking) or self.is_out or self.at_fence
                or self.position >= 0 and not self.may_append or self.above.up_is_held_up())

    cpdef credit(self, bint given):
        self.has_credit = given
        if given:
            self.core.again(self)

    # From the core.

    cpdef proceed(self):
        """Look for news, say what is applied here, append the packets of this member, and wake the others."""
        cdef ring_member* m
        if self.left is not None:
            self.left.close()           # all of it has been handed up
            self.left = None
        if self.segment is None:
            return
        m = &self.segment.member
        if not self.may_append:
            self.have_all_begun()
        self.allow(0)
        self.advance()
        if not self.at_fence and self.allowed > 0 and ring_has_news(m):
            self.drain()
            if self.core.handing is not None or self.segment is None:
                return                  # it is applied first; or a view has begun
            self.advance()
        if self.unordered.count:
            self.submit_more()
            if self.core.handing is not None:
                return
        if self.segment is None:
            return
        if self.appended or self.core.due:
            self.wake_others()
        self.listen()

    cdef int set_deadline(self) except -1:
        self.deadline = min(min(self.linger_at, min(self.look_at, self.full_at)), min(self.lanes_at, self.stuck_at))
        return 0

    cpdef catch_up(self):
        self.input, self.shares, self.allowed = self.core.inputs, False, len(self.rows) * <Py_ssize_t>self.lane
        self.core.again(self)

    cpdef expire(self):
        cdef int64_t now = self.core.now
        if self.linger_at <= now:
            self.linger_at = NEVER
            self.core.again(self)
        if self.look_at <= now:
            self.look_at = NEVER
            self.woken()
        if self.full_at <= now:
            self.full_at = NEVER
            self.core.again(self)
            if self.report_is_due:
                self.end_view()
        if self.lanes_at <= now:
            self.offer_again(self.unordered.count and not self.frozen)
            self.core.again(self)
        if self.stuck_at <= now:
            self.stuck_at = now + self.detection
            self.below.flush(())
        self.set_deadline()

    # What is in the order.

    cdef int drain(self, int most=AT_ONCE) except -1:
        """Deliver what is there.

        What is delivered waits until it is applied, one after the other; few find their room in the cache.
        """
        cdef ring_entry entry
        cdef int found = 0
        if self.draining or self.segment is None or self.is_out:
            return 0
        self.draining = True
        try:
            while most < 0 or most > 0 and self.allowed > 0:
                most -= 1
                found = ring_next(&self.segment.member, &entry)
                if found <= 0:
                    break
                found = self.deliver(&entry)
                if found < 0:
                    break
        finally:
            self.draining = False
        return self.stopped_at(found) if found < 0 else 0

    cdef int deliver(self, ring_entry* entry) except NO_CODE:
        """Hand a packet up, if it is whole."""
        cdef ring_member* m = &self.segment.member
        cdef const unsigned char* packet = entry.bytes
        cdef Message message = None
        cdef int degree = 0, kind = WHOLE
        cdef uint64_t wall = 0
        if not entry.kind and entry.size >= LANE_HEADER:
            degree, kind, wall = packet[0], packet[1], load64(packet + 8)
            message = self.copied(entry, kind)
        if not ring_is_in(m):           # else it may have been overwritten meanwhile
            return RING_OUT
        if message is None:
            raise DamagedMemory(f"slot {entry.slot} of the order in shared memory cannot be: it leads to what RING did not write")
        ring_applied(m, entry)
        if entry.row != m.row:
            self.allowed -= entry.size
        self.core.schedule(self)
        return self.pass_up(message, kind, degree, entry.row, wall)

    cdef int pass_up(self, Message message, int kind, int degree, unsigned row, uint64_t wall) except NO_CODE:
        """Take a packet in its place in the order, and hand it up if that makes it whole."""
        self.note(wall)
        if kind == MORE:
            return 0
        self.place(message, degree, row)
        return self.hand_up_placed(message)

    cdef int hand_up_placed(self, Message message) except NO_CODE:
        self.core.mark("W11")
        self.above.up_cast(message)
        self.core.mark("W12")
        return 0

    cdef Message copied(self, ring_entry* entry, int kind):
        """A packet, as far as it has come; one of the own lane in place. None for a part that cannot be."""
        cdef const unsigned char* packet = entry.bytes
        cdef Py_ssize_t size = <Py_ssize_t>entry.size - LANE_HEADER
        if kind != WHOLE:
            return self.incoming.add(entry.row, kind, load32(packet + 4), packet + LANE_HEADER, size)
        if entry.row == self.segment.member.row:
            return self.incoming.in_place(<unsigned char*>packet + LANE_HEADER, size)
        return self.incoming.copy(self.next, packet + LANE_HEADER, size)

    cdef int stopped_at(self, int found) except -1:
        """There is an entry that is not to be delivered."""
        if found == RING_FENCED:
            self.meet_fence()
        elif found == RING_OUT:
            self.is_out = True
            self.stuck_at = self.core.now + self.detection
            if self.report_is_due:
                self.report()
            if self.awaits_cut:
                self.awaits_cut = False
                self.below.holds()
        else:
            self.segment.fail(found)
        self.set_deadline()
        return 0

    cdef int report(self) except -1:
        """Say what is held here. If others have gone on without this member, that is refused, which tells it so."""
        self.report_is_due = False
        self.below.flush_ok(self.up_held())
        return 0

    cdef int meet_fence(self) except -1:
        """All of this view is delivered."""
        self.at_fence = True
        self.below.held_up()
        if self.report_is_due:
            self.report()
        if self.awaits_cut:
            self.awaits_cut = False
            self.below.holds()
        if self.at_fence and not self.frozen and self.stuck_at == NEVER:
            self.stuck_at = self.core.now + self.detection  # it may be that this member is asked no more
        return 0

    # The change of view.

    cpdef up_flush(self, object failed):
        """End the view in the order, deliver all of it, and report."""
        self.frozen = True
        self.stuck_at = NEVER
        if self.segment is None:
            self.below.flush_ok(self.up_held())
        else:
            self.report_is_due = True
            self.end_view()
        self.offer_lane(False)

    cdef int end_view(self) except -1:
        """Put the fence, if it is not there, and go up to it."""
        cdef int found = 0
        if self.is_out:
            return self.report()
        if not self.at_fence:
            found = ring_append_fence(&self.segment.member)
            if found == RING_FULL:
                self.full()
        self.drain(ALL_OF_IT)
        return 0

    cpdef bytes up_held(self):
        """Where this member is in the order, and what a joiner must know to go on there."""
        cdef ring_member* m
        cdef int64_t slot = -1
        cdef object counters = self.counters
        if self.segment is not None and self.installed is not None and not self.is_out:
            m = &self.segment.member
            slot = <int64_t>m.next
            counters = {incarnation: m.tickets[<unsigned>row] for incarnation, (row, _) in self.rows.items()}
        order = Fence(self.lineage or 0, slot, self.rows).pack()
        return Cut(self.next, self.next, self.stamp, counters, (), order).pack()

    cpdef list up_missing(self, bytes report, bint before):
        """Nothing: all is in memory."""
        return []

    cpdef up_check(self, object report, object cut):
        for each in (report, cut):
            if each is not None:
                fence_of(each)

    cpdef up_supply(self, bytes piece):
        raise ProtocolError("a packet that nothing here lacks")

    cpdef bytes up_flush_ok(self, dict reports, object view, bint ends):
        """The cut: what one that is attached has reported; all of these have come to the fence.

        Where none of these goes on, nothing was written in this view, as not all have mapped the order, and none is left
        that could offer it: the next view begins another one. So it does before old incarnations of rows look like later ones.
        """
        cdef bytes held = self.up_held()
        cdef bytes cut = max([held, *reports.values()], key=slot_of)
        reports = {**reports, self.position: held}
        if not begins_anew(self.installed, view) and any([
                slot_of(report) >= 0 and view.position(self.installed.members[position].incarnation) >= 0
                for position, report in reports.items()]):
            return cut
        it, fence = Cut.unpack(cut), fence_of(cut)
        return it.replace(order=fence.replace(slot=-1).pack()).pack()

    cpdef bint up_cut(self, bytes cut):
        cdef object it = fence_of(cut)
        if self.installed is None or self.failed or self.is_out or it.slot < 0:
            return True                 # one that is out delivers no more, and may lead to the view without it
        if self.segment is None:
            return True                 # no member appends in a view before this one has mapped its memory
        self.awaits_cut = False         # asked again: if all of it is there now, the answer says so
        self.drain(ALL_OF_IT)
        if self.at_fence or self.is_out:
            return True
        self.awaits_cut = True
        return False

    cpdef up_view(self, object view, bytes cut):
        """Begin the next view behind the fence."""
        before = self.installed
        it = Cut.unpack(cut) if cut else None
        self.drain(ALL_OF_IT)
        self.frozen = True              # what is cast meanwhile goes behind the view
        self.installed = view
        self.position = view.position(self.me.incarnation)
        self.report_is_due = self.awaits_cut = False
        self.full_at = self.stuck_at = NEVER
        self.full_since = self.offers = 0
        self.incoming.clear()
        if self.unordered.count:
            (<Unordered>self.unordered.at(0)).sent = 0
        if self.position < 0:
            return
        self.enter_order(it, view)
        self.is_out = False
        self.linger_at = NEVER
        self.lacking = frozenset()
        self.holders.count(view, self.lacking)
        self.begins = self.next, self.next
        if self.me.incarnation not in self.rows:
            self.give_up(f"it has room for {RING_ROWS} members; {REMEDY}", self.me)
        self.above.up_view(view, cut)
        self.frozen = self.at_fence = False
        self.say_begun()
        self.offer_lane(False)
        self.below.held_up()
        self.core.again(self)

    cpdef up_send(self, Message message):
        """What is said of memory; what else is sent is for the layers above."""
        cdef unsigned char* kind = message.pop(1)
        if kind is NULL or not OFFER <= kind[0] <= OTHER:
            raise ProtocolError("a message of no kind for RING")
        if kind[0] == OTHER:
            self.above.up_send(message)
        else:
            self.take(kind[0], message.source, message.body)

    cpdef up_exit(self, str why):
        self.leave_order()
        self.above.up_exit(why)

    cdef int leave_order(self) except -1:
        self.position = -1
        self.close()
        self.incoming.clear()
        self.linger_at = self.look_at = self.full_at = self.stuck_at = self.deadline = NEVER
        return 0

    cpdef list hand_over(self, object view, object it):
        """Deliver all, and leave the order for another one; returns what has no place in it, to be cast there."""
        cdef Unordered packet
        cdef list left = []
        self.drain(ALL_OF_IT)
        for packet in self.unordered.all():
            left.append(body_of(packet.message, packet.size).copy())
            (<Message>left[len(left) - 1]).degree = packet.message.degree
        self.leave_order()
        return left

    cpdef dict dump(self):
        status = {} if self.segment is None else self.segment.status()
        return {**status, "slot": status.get("next", -1), "next": self.next, "unordered": self.unordered.count,
                "parts": self.incoming.size(), "attached": self.segment is not None, "armed": self.armed, "at fence": self.at_fence, "is out": self.is_out}
