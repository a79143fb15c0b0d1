# cython: allow_none_for_extension_args=False
"""The memory below RING: the order and the lanes that a member maps, and the rows of a view.

A member offers its memory to those that have not mapped it (OFFER). It says in its row that it has begun a view, and that
it has mapped the memory of all others in it; the last one to say that wakes the others. A member appends only when all
have said so: they must be able to read what it appends, if it dies; and one that has not begun the view delivers nothing
of it, so its reads would not see what has been written there.
"""

import os

import msgpack

from orcalike.transport.drivers.descriptors import ALARM, LANE, ORDER, lasts
from orcalike.transport.errors import DamagedMemory, ProtocolError
from orcalike.transport.ring.choice import pair_of
from orcalike.transport.ring.fence import Fence, first_rows, incarnation_in
from orcalike.transport.wire.control import shown, unpack
from orcalike.transport.wire.digest import blake2b

from libc.stdint cimport uint32_t, uint64_t
from posix.unistd cimport close, getpid

from orcalike.transport.drivers.ring_segment cimport (
    RING_LOST, RING_ROWS, Segment, ring_header, ring_member, ring_order, ring_renew_least, ring_strike,
    ring_take_row,
)
from orcalike.transport.fast cimport FastLayer
from orcalike.transport.layers.base cimport NEVER, Core
from orcalike.transport.wire.message cimport Message

cdef extern from "ring/order.h" nogil:
    int ring_pass_fence(ring_member* m, uint32_t view)
    void ring_admit(ring_member* m, unsigned row, uint32_t incarnation)
    void ring_drop(ring_member* m, unsigned row)
    enum:
        RING_READS_ALL
    int ring_say_begun(ring_member* m, uint32_t reads_all)
    int ring_say_since(ring_member* m)
    int ring_say_alone(ring_member* m, uint64_t left_out)
    bint ring_vouches_for(const ring_member* m, unsigned row)
    uint64_t ring_not_begun(const ring_member* m, uint32_t reads_all)
    void ring_use_alarm(ring_member* m, uint32_t pid)
    void ring_wake_last(ring_member* m)
    void ring_wake_all(ring_member* m)
    int ring_map_order(int fd, const unsigned char* group, const unsigned char* boot,
                       ring_order** order, ring_header* header)

cdef extern from "ring/own_row.h" nogil:
    const char* ring_damaged_word(const ring_member* m)

cdef extern from *:
    """
    static inline void ring_expect_fence(struct ring_member *m, uint32_t view, uint32_t reserve)
    {
        m->view = ring_fence_number(view);
        m->reserve = reserve;
    }
    #define ring_applied_of(m, row) ring_get_acquire(&(m)->order->rows[row].applied)
    """
    void ring_expect_fence(ring_member* m, uint32_t view, uint32_t reserve) nogil
    uint64_t ring_applied_of(ring_member* m, unsigned row) nogil


REMEDY = ("use ORDER in the place of RING: make the group with "
          'join(stack="PACK:XFER:ORDER:MBRSHIP:COM:unix")')

cdef enum:
    SLOTS_LEAST = 16
    SLOTS_MOST = 4194304
    LANE_LEAST = 4096
    LANE_MOST = 134217728
    AGAIN = 1000000                 # ns before another try to append
    UNLINKED_MAX = 3                # detection times without a link: COM tries again within two
    WHY_MAX = 200                   # bytes that a member says of memory that it cannot map


def group_id(str group, lineage):
    """What the header of an order says of its group."""
    return blake2b(f"{lineage} {group}".encode(), digest_size=16).digest()


def boot_id():
    """What it says of the host, which is another one after each boot."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return bytes.fromhex(file.read().decode().strip().replace("-", ""))


def check_sizes(slots, lane):
    """Raise ValueError unless RING can have so many packets under way, and so many bytes of each member's."""
    for value, least, most in (slots, SLOTS_LEAST, SLOTS_MOST), (lane, LANE_LEAST, LANE_MOST):
        if not least <= value <= most or value & (value - 1):
            raise ValueError(f"RING takes {SLOTS_LEAST} to {SLOTS_MOST} slots and a lane of {LANE_LEAST} to "
                             f"{LANE_MOST} bytes, powers of two")


cdef class MappedOrder(FastLayer):
    """A layer whose order is in memory that all members map."""

    def __cinit__(self):
        for row in range(RING_ROWS):
            self.alarms[row] = -1

    def __dealloc__(self):
        self.drop_alarms()

    def __init__(self, Core core, config, me, slots, lane):
        super().__init__(core)
        check_sizes(slots, lane)
        self.slots, self.lane = slots, lane
        self.me = me
        self.group = config.group
        self.detection, self.slow = config.detection, config.slow
        self.rows, self.counters = {}, {}
        self.mapped, self.mapped_by = set(), set()
        self.position = -1
        self.next = 1
        self.has_credit = True
        self.lanes_at = self.full_at = NEVER

    cdef int set_deadline(self) except -1:
        """Set the deadline to the first of all."""
        self.deadline = self.lanes_at
        return 0

    cdef int enter_order(self, object it, object view) except -1:
        """The order of a view: the one before it goes on, if there was one, and a member that has it."""
        self.check_row()
        # In a view that goes on: each member that has struck this one would have refused its report.
        if self.segment is not None and self.is_out and view.lineage == self.lineage:
            self.damaged("state", f"others have gone on without this member by it, and view {view.number} has it")
        self.failed = self.failed and self.on_apart is None     # where it need not leave it tries again
        self.unlinked_offers = 0
        self.lost_since = NEVER
        fence = Fence.unpack(it.order) if it is not None and it.order else None     # else a sequencer had the order before
        if it is not None and (self.lineage is None or self.segment is None):
            self.next, self.stamp = it.last, it.stamp
        if fence is None or fence.slot < 0 or fence.lineage != view.lineage:
            self.close()
            self.lineage = view.lineage
            self.rows, self.counters = first_rows(view), {}
            self.start_slot = 0
            if self.position == 0:
                self.make()
            return 0
        self.lineage = view.lineage
        if self.segment is None:
            self.start_slot = <uint64_t>fence.slot + 1
            self.rows, self.counters = fence.rows_after(view), it.counters
        else:
            self.rows = fence.rows_after(view)
            self.pass_fence(view)
        return 0

    cdef int make(self) except -1:
        """Make the order, in memory of this member's."""
        try:
            self.use(Segment.create(group_id(self.group, self.lineage), boot_id(),
                                    (<object>self.slots).bit_length() - 1, self.lane, self.group,
                                    incarnation_in(self.installed)))
        except OSError as error:
            if self.on_apart is None:
                raise
            self.give_up(f"it cannot be made: {error}", self.me, lasts(error))
        return 0

    cdef int pass_fence(self, object view) except -1:
        """Go on behind the fence, with the rows of the view."""
        cdef ring_member* m = &self.segment.member
        cdef unsigned row
        present = {row: incarnation for row, incarnation in self.rows.values()}
        for row in range(<unsigned>RING_ROWS):
            if m.members >> row & 1 and present.get(row) != m.incarnations[row]:
                ring_drop(m, row)
                self.segment.unmap(self.segment.lane_of.pop(row, 0))
                self.drop_alarm(row)
        here = {member.incarnation for member in view.members}
        self.mapped &= here
        self.mapped_by &= here
        self.may_append = False         # until all have begun this view, too
        if ring_pass_fence(m, view.number):
            self.damaged("applied")
        self.settle_rows()
        self.segment.rouse()            # one that died may have taken the bit of a thread that sleeps
        return 0

    cdef int settle_rows(self) except -1:
        """Set the rows of the view, in which this member is attached."""
        cdef ring_member* m = &self.segment.member
        cdef unsigned row
        ring_expect_fence(m, self.installed.number, <uint32_t>min((m.mask + 1) // 8, <uint64_t>64))
        for position, member in enumerate(self.installed.members):
            if member.incarnation in self.rows:
                row, incarnation = self.rows[member.incarnation]
                ring_admit(m, row, incarnation)
                self.position_of[row] = position
        ring_use_alarm(m, getpid())
        self.armed = False
        self.published = <uint64_t>-1
        return 0

    cdef int say_begun(self) except -1:
        """Say that this member has begun the view, and whether it can read what others append; the last one wakes them."""
        cdef uint32_t reads_all = 0 if self.unread() else RING_READS_ALL
        if self.segment is not None:
            ring_say_begun(&self.segment.member, reads_all)
            self.check_row()
            if self.have_all_begun():
                ring_wake_all(&self.segment.member)
        return 0

    cdef int check_row(self) except -1:
        """Raise DamagedMemory if a word of the own row is not what this member has written."""
        cdef const char* word = NULL
        if self.segment is not None:
            word = ring_damaged_word(&self.segment.member)
        return 0 if word is NULL else self.damaged((<bytes>word).decode())

    cdef int damaged(self, str word, str why="this member has written another one") except -1:
        """Raise DamagedMemory for a word of the own row."""
        raise DamagedMemory(f"the word {word!r} of row {self.segment.member.row} of the order in shared memory cannot be: {why}")

    cdef list unread(self):
        """The members whose memory is not mapped here."""
        return [member for member in self.installed.members if member.incarnation in self.rows
                and member.incarnation not in self.mapped and member.incarnation != self.me.incarnation]

    cdef bint have_all_begun(self) except -1:
        """Whether all members have begun the view, and can read what is appended here."""
        if (self.segment is None or self.failed or len(self.rows) < len(self.installed.members)
                or ring_not_begun(&self.segment.member, RING_READS_ALL)):
            return False
        self.may_append = True
        self.mapped_by.update(self.rows)
        self.lanes_at = NEVER
        return True

    cdef int offer_lane(self, bint again) except -1:
        """Offer this member's memory to those that have never mapped it; `again`: to all that cannot read all lanes."""
        cdef Message message
        self.lanes_at = NEVER
        if self.segment is None or self.installed is None or self.position < 0:
            return self.set_deadline()
        missing = self.not_begun(RING_READS_ALL)
        if missing or self.unread():
            self.lanes_at = self.core.now + self.detection
        if not again:
            missing = tuple([position for position in missing
                             if self.installed.members[position].incarnation not in self.mapped_by])
        if missing:
            offer = self.core.descriptors.offer
            me = self.me.incarnation
            message = Message(msgpack.packb([
                self.lineage, offer(me, ORDER, self.segment.order_fd),
                offer(me, LANE, self.segment.lane_fd), offer(me, ALARM, self.core.alarm.writer)]))
            message.push(1)[0] = OFFER
            self.below.send(message, missing)
        return self.set_deadline()

    cdef tuple not_begun(self, uint32_t reads_all):
        """The positions of the others that have not begun this view, or, with RING_READS_ALL, cannot read all lanes in it."""
        cdef uint64_t missing = ring_not_begun(&self.segment.member, reads_all)
        return tuple([position for position, member in enumerate(self.installed.members)
                      if position != self.position and member.incarnation in self.rows
                      and missing >> <unsigned>self.rows[member.incarnation][0] & 1])

    cdef int offer_again(self, bint packets_wait) except -1:
        """Offer the memory once more; go on without those that do not begin the view while packets wait for it (F17).

        Offers are counted, not the time, so that a standstill of this member is not theirs. If all have begun the view,
        it is over for one that cannot read what another one may append.
        """
        self.check_row()
        self.look_for_link()
        self.offers = self.offers + 1 if packets_wait else 0
        if not self.have_all_begun() and self.offers * self.detection >= self.slow:
            self.offers = 0
            late = self.not_begun(0) or self.not_begun(RING_READS_ALL)
            unread = self.unread()
            if unread and not late:
                self.give_up(f"the memory of {unread[0]} cannot be mapped: {REMEDY}", unread[0])
            else:
                self.below.flush(late)
        return self.offer_lane(True)

    cdef int look_for_link(self) except -1:
        """Go on by another order, or without this member, if another one that has begun the view cannot offer its memory here.

        As no link leads there: one of the two may have no descriptor left for it. Over RING alone the younger leaves, before
        the others go on without both.
        """
        cdef object com = self.below.focus("COM"), other = None
        for member in self.unread() if not self.not_begun(0) else ():
            if other is None and not com.reaches(self.installed.position(member.incarnation)):
                other = member
        self.unlinked_offers = 0 if other is None else self.unlinked_offers + 1
        if self.on_apart is not None and self.unlinked_offers >= UNLINKED_MAX or (
                self.unlinked_offers * self.detection * 2 >= self.slow
                and self.installed.position(other.incarnation) < self.position):
            self.give_up(f"no link to {other} can be made, by which it would give its memory; see whether one of the two "
                         "has no file descriptors left (ulimit -n)", other, False)
        return 0

    cdef int full(self) except -1:
        """Others have to apply first: wake them, try again, and in the end go on without the slowest (F17)."""
        cdef ring_member* m = &self.segment.member
        cdef uint64_t least
        self.check_row()                # else this member waits for itself, and the others are taken for those that are behind
        if not self.full_since:
            self.full_since = max(self.core.now, 1)
        elif self.full_at == NEVER:
            self.below.held_up()
        if self.full_at != NEVER:
            return 0                    # the others know, and wake each other no faster
        ring_wake_all(m)
        # Each of those that wait wakes all others: where a member hangs they must not keep each other awake.
        self.full_at = self.core.now + min(max(AGAIN, (self.core.now - self.full_since) // 8), self.detection)
        if self.core.now - self.full_since >= self.slow and self.has_credit and not self.frozen:
            self.full_since = 0
            least = ring_renew_least(m)
            behind = tuple([position for position, member in enumerate(self.installed.members)
                            if position != self.position and member.incarnation in self.rows
                            and ring_applied_of(m, self.rows[member.incarnation][0]) <= least])
            self.below.flush(behind)
        self.set_deadline()
        return 0

    cdef int take(self, int kind, int source, bytes body) except -1:
        """Another member says something of its memory, or of this one's."""
        if kind == OFFER:
            return self.take_lane(source, body)
        return self.take_refusal(source, body) if kind == UNREADABLE else self.take_apart(source, body)

    cdef int take_lane(self, int source, bytes body) except -1:
        """Another member offers its memory: map it, all of the order if this member has not."""
        cdef Message answer
        cdef str why = None
        cdef bint for_good = True
        match unpack(body, "an offer of shared memory", depth=2):
            case [int(lineage), [int(), int()] as order, [int(), int()] as lane, [int(), int()] as alarm]:
                pass
            case _:
                raise ProtocolError("an offer of shared memory that RING did not make")
        member = self.installed.members[source]
        if lineage != self.lineage or self.failed:
            return 0
        if self.segment is None and self.frozen:
            return 0                    # it has reported that it has nothing: what it knew would be taken for where the view ends
        try:
            if self.segment is None:
                why = self.attach(member, order)
            if why is None and self.segment is None:
                return self.find_row_lost(member)
            if why is None and member.incarnation not in self.mapped:
                why = self.map_lane(member, lane, alarm)
        except (FileNotFoundError, ProcessLookupError):
            return 0                    # that member is leaving, or dead; if not, it offers again
        except (OSError, ProtocolError) as error:
            why, for_good = str(error), lasts(error)
        if why is not None and source < self.position:
            return self.give_up(f"the memory of {member} cannot be mapped: {why}. If it is of another user or user "
                                f"namespace, or on another host, {REMEDY}", member, for_good)
        if why is None:
            self.say_begun()
        else:
            if self.on_apart is not None:
                self.on_apart((member.incarnation, self.me.incarnation), for_good)
            answer = Message(msgpack.packb([for_good, why.encode()[:WHY_MAX]]))
            answer.push(1)[0] = UNREADABLE
            self.below.send(answer, (source,))
        self.core.again(self)
        return 0

    cdef int take_refusal(self, int source, bytes body) except -1:
        """Another member cannot map this one's memory: this one leaves if it is the younger of the two."""
        cdef object member = self.installed.members[source]
        match unpack(body, "why memory cannot be mapped", depth=1):
            case [bool(for_good), bytes(why)]:
                text = shown(why[:WHY_MAX].decode(errors="replace"))
            case _:
                raise ProtocolError("why memory cannot be mapped, which RING did not make")
        if source < self.position:
            self.give_up(f"{member} cannot map the memory of this member: {text}. If this one is of another user or "
                         f"user namespace, or on another host, {REMEDY}", member, for_good)
        return 0

    cdef str attach(self, object member, object order_there):
        """Map the order that a member has, and take the own row, if it is still there: why that cannot be, or None."""
        cdef Segment segment = Segment.__new__(Segment)
        cdef ring_order* order = NULL
        cdef ring_header header
        cdef ring_member* m
        cdef bytes group = group_id(self.group, self.lineage), boot = boot_id()
        cdef int failed
        cdef unsigned row
        segment.order_fd = self.core.descriptors.open(member.incarnation, tuple(order_there), os.O_RDWR)
        failed = ring_map_order(segment.order_fd, group, boot, &order, &header)
        if failed:
            segment.fail(failed)
        segment.begin(order, header.slots_log, header.lane_size, self.start_slot)
        m = &segment.member
        self.lane = header.lane_size
        m.row, m.incarnation = self.rows[self.me.incarnation]
        for incarnation, (row, number) in self.rows.items():
            ring_admit(m, row, number)
            m.tickets[row] = self.counters.get(incarnation, 0)
        segment.map_own_lane()          # before the row is taken: if that cannot be, a later view tries again
        failed = ring_take_row(m, m.row, m.incarnation, getpid())
        if failed == RING_LOST:
            return None                 # the others have gone on without this member, and say so
        if failed:
            segment.fail(failed)
        self.use(segment)
        self.offer_lane(False)
        return None

    cdef int find_row_lost(self, object member) except -1:
        """The row of this member is not offered to it: others have gone on without it, and say so soon, or the memory is damaged."""
        if self.lost_since == NEVER:
            self.lost_since = self.core.now
        elif self.core.now - self.lost_since >= UNLINKED_MAX * self.detection:
            self.give_up(f"the word 'state' of row {self.rows[self.me.incarnation][0]} cannot be: it is another member's, "
                         f"and view {self.installed.number} has this one there", member)
        return 0

    cdef int use(self, Segment segment) except -1:
        """This member is attached: its reads look into the memory from here on, and others vouch for it by its row."""
        self.segment = segment
        self.core.order = &segment.member
        self.core.futex = segment
        self.settle_rows()
        ring_say_since(&segment.member)
        return 0

    cdef str map_lane(self, object member, object lane, object alarm):
        """Map the lane of another member, and have its alarm: why that cannot be, or None."""
        cdef ring_member* m = &self.segment.member
        cdef unsigned row = self.rows[member.incarnation][0]
        cdef int fd = self.core.descriptors.open(member.incarnation, tuple(alarm), os.O_RDWR)
        self.drop_alarm(row)            # it may be offered again, where its lane could not be mapped
        self.alarms[row] = fd
        fd = self.core.descriptors.open(member.incarnation, tuple(lane), os.O_RDONLY)
        try:
            self.segment.map_lane(row, m.incarnations[row], fd)
        finally:
            close(fd)
        m.eventfds[row] = self.alarms[row]
        self.mapped.add(member.incarnation)
        return None

    cpdef bint up_rests(self, object view, bytes cut):
        """The kernel tells of deaths, and memory cannot be cut off."""
        return True

    cpdef bint up_vouches(self, object incarnation):
        return (self.segment is not None and incarnation in self.rows
                and ring_vouches_for(&self.segment.member, self.rows[incarnation][0]))

    cpdef up_alone(self, tuple left_out):
        cdef uint64_t rows = 0
        if self.segment is not None:
            for incarnation in left_out:
                if incarnation in self.rows:
                    rows |= <uint64_t>1 << <unsigned>self.rows[incarnation][0]
            ring_say_alone(&self.segment.member, rows)

    cdef int give_up(self, str why, object other, bint for_good=True) except -1:
        """This member cannot take part beside `other`: it leaves, and its application learns why; or another order is taken for all."""
        cdef tuple pair = (self.me.incarnation, other.incarnation)
        if not self.failed:
            self.failed = True
            self.may_append = False
            if self.on_apart is None:
                self.above.up_join_denied(f"the order in shared memory cannot be joined: {why}")
                self.below.leave()
            else:
                if self.installed.position(other.incarnation) > self.position:
                    pair = pair[::-1]
                self.say_apart(pair[0], pair[1], for_good)
                self.on_apart(pair, for_good)
        return 0

    cdef int say_apart(self, object younger, object older, bint for_good) except -1:
        """All others are to know that two share no memory, of which this member is one."""
        cdef Message message = Message(msgpack.packb([younger, older, for_good]))
        others = tuple([position for position in range(len(self.installed.members)) if position != self.position])
        message.push(1)[0] = APART
        if others:
            self.below.send(message, others)
        return 0

    cdef int take_apart(self, int source, bytes body) except -1:
        """Another member says that two share no memory, of which it is one."""
        match unpack(body, "members that are apart", depth=1):
            case [*said, bool(for_good)]:
                pair = pair_of(said)
            case _:
                raise ProtocolError("word of members that are apart, which RING did not make")
        if self.on_apart is None or self.installed.members[source].incarnation not in pair:
            raise ProtocolError("word of members that are apart, which is not for this member, or not of one of them")
        self.on_apart(pair, for_good)
        return 0

    def release(self):
        """Give the memory back where the member is of no use any more, as after a simulated run."""
        self.close()

    cdef int close(self) except -1:
        """Take part in the order no more; the others need not wait for this member."""
        self.core.order, self.core.futex, self.core.by_futex = NULL, None, False
        if self.segment is not None:
            ring_strike(&self.segment.member, self.segment.member.row, self.segment.member.incarnation)
            if self.appended:
                ring_wake_last(&self.segment.member)
            if self.core.handing is None:
                self.segment.close()
            else:
                self.left = self.segment        # packets of the own lane are still to be handed up
                self.core.again(self)
        self.segment = None
        self.may_append = self.armed = self.appended = False
        self.mapped.clear()
        self.mapped_by.clear()
        self.drop_alarms()
        self.lanes_at = NEVER
        return self.set_deadline()

    cdef int drop_alarms(self) noexcept:
        """Wake no other member any more."""
        cdef unsigned row
        for row in range(<unsigned>RING_ROWS):
            self.drop_alarm(row)
        return 0

    cdef int drop_alarm(self, unsigned row) noexcept:
        if self.alarms[row] >= 0:
            close(self.alarms[row])
        self.alarms[row] = -1
        return 0
