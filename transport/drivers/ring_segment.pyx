"""The order in shared memory (transport/ring), for Python: its memory, and a member's part of it.

What a layer does for each message it does by the C functions, on `Segment.member`, without an object of
Python. The methods here are for tests, for joining, and for looking at a segment.

A descriptor that is given is not kept: it is the caller's to close.
"""

from collections import namedtuple

cimport cython
from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memcpy, memset
from posix.unistd cimport close, getpid

from orcalike.transport.errors import DamagedMemory, Expelled, ProtocolError

cdef extern from "<sys/mman.h>" nogil:
    int munmap(void* address, size_t size)

cdef extern from "<string.h>" nogil:
    char* strerror(int error)

cdef extern from "ring/order.h" nogil:
    int ring_state_of(uint32_t word)
    uint32_t ring_incarnation_of(uint32_t word)

cdef extern from "ring/system.h" nogil:
    int ring_make_order(const char* name, uint32_t slots_log, uint32_t lane_size,
                        const unsigned char* group, const unsigned char* boot, ring_order** order)
    int ring_map_order(int fd, const unsigned char* group, const unsigned char* boot,
                       ring_order** order, ring_header* header)
    int ring_make_lane(uint32_t lane_size, unsigned char** lane)
    int ring_open_lane(int fd, uint32_t lane_size, const unsigned char** lane)
    uint64_t ring_order_size(uint32_t slots_log)

cdef extern from *:
    """
    #define ring_applied_at(m, row) ring_get_relaxed(&(m)->order->rows[row].applied)
    #define ring_state_at(m, row) ring_get_relaxed(&(m)->order->rows[row].state)
    #define ring_interest_at(m, row) (ring_get_relaxed(&(m)->order->rows[row].interest) & RING_OBJECTS_MASK)
    #define ring_holder_at(m, row) ring_get_relaxed(&(m)->order->rows[row].holder)
    #define ring_sleepers_of(m) ring_get_relaxed(&(m)->order->sleepers)
    #define ring_waiters_of(m) ring_get_relaxed(&(m)->order->room_waiters)
    """
    uint64_t ring_applied_at(ring_member* m, unsigned row) nogil
    uint32_t ring_state_at(ring_member* m, unsigned row) nogil
    uint64_t ring_interest_at(ring_member* m, unsigned row) nogil
    uint64_t ring_holder_at(ring_member* m, unsigned row) nogil
    uint64_t ring_sleepers_of(ring_member* m) nogil
    uint64_t ring_waiters_of(ring_member* m) nogil

AT_ONCE, LAZY = RING_AT_ONCE, RING_LAZY
JOIN, LEAVE, EXPEL = RING_JOIN, RING_LEAVE, RING_EXPEL

Entry = namedtuple("Entry", "slot row kind incarnation messages data", module=__name__)
State = namedtuple("State", "next members incarnations tickets", module=__name__)

cdef dict FAULTS = {
    -3: "a packet is larger than a quarter of a lane",
    -4: "it is of another round",
    -5: "it is of a row that no member has",
    -6: "the lane of its sender is not mapped here",
    -7: "it begins outside of its lane",
    -8: "it ends outside of its lane, or is too large",
    -9: "it is not the next packet of its sender",
    -10: "it is a view of no kind",
    -11: "all rows are taken",
    -12: "the row is no longer offered",
    -10001: "it is not sealed: it could be cut off, or written by others",
    -10002: "it is not one",
    -10003: "it is of another version of orcalike",
    -10004: "its sizes do not fit",
    -10005: "it is of another group",
    -10006: "it is of another boot of the host",
}
PREFIX = "orcalike-order "
cdef int NAME_MAX = 200                 # of 249 bytes that the kernel takes
cdef int FIRST_OF_SEGMENTS = -10000
cdef list STATES = ["free", "joining", "in", "struck"]


@cython.no_gc_clear                     # it unmaps when it is let go
cdef class Segment(Futex):
    """A member's part of an order in shared memory."""

    def __cinit__(self):
        memset(&self.member, 0, sizeof(ring_member))
        self.order_fd = self.lane_fd = -1
        self.lane_of = {}

    def __dealloc__(self):
        self.close()

    @classmethod
    def create(cls, bytes group not None, bytes boot not None, uint32_t slots_log=16,
               uint32_t lane_size=1 << 20, str name="", uint32_t incarnation=1):
        """Make an order, of which this is the only member so far; people see the group's name."""
        cdef Segment self = cls.__new__(cls)
        cdef ring_order* order = NULL
        checked_ids(group, boot)
        self.order_fd = ring_make_order(memory_name(name), slots_log, lane_size, group, boot, &order)
        if self.order_fd < 0:
            self.fail(self.order_fd)
        self.begin(order, slots_log, lane_size, 0)
        if ring_found(&self.member, 0, incarnation, getpid()):
            self.fail(-12)
        self.map_own_lane()
        return self

    @classmethod
    def attach(cls, int order_fd, bytes group not None, bytes boot not None, unsigned row,
               uint32_t incarnation, state):
        """Take the row that a member has offered; `state` is of the slot after the view with it.

        Raises ProtocolError for memory that is no order of this group, and if the row is not offered
        any more.
        """
        cdef Segment self = cls.__new__(cls)
        cdef ring_order* order = NULL
        cdef ring_header header
        cdef int failed, i
        checked_ids(group, boot)
        if row >= RING_ROWS or {len(state.incarnations), len(state.tickets)} != {RING_ROWS}:
            raise ValueError(f"an order has {RING_ROWS} rows")
        failed = ring_map_order(order_fd, group, boot, &order, &header)
        if failed:
            self.fail(failed)
        self.begin(order, header.slots_log, header.lane_size, state.next)
        self.member.members = state.members
        for i in range(RING_ROWS):
            self.member.incarnations[i] = state.incarnations[i]
            self.member.tickets[i] = state.tickets[i]
        failed = ring_take_row(&self.member, row, incarnation, getpid())
        if failed:
            self.fail(failed)
        self.map_own_lane()
        return self

    cdef int begin(self, ring_order* order, uint32_t slots_log, uint32_t lane_size,
                   uint64_t next) except -1:
        ring_begin(&self.member, order, slots_log, lane_size, next)
        self.order_size = ring_order_size(slots_log)
        self.pid = getpid()
        return 0

    cdef int map_own_lane(self) except -1:
        self.lane_fd = ring_make_lane(self.member.lane_size, &self.member.own_lane)
        if self.lane_fd < 0:
            self.fail(self.lane_fd)
        ring_map_lane(&self.member, self.member.row, self.member.incarnation, self.member.own_lane)
        return 0

    @property
    def row(self):
        return self.member.row

    @property
    def incarnation(self):
        return self.member.incarnation

    @property
    def next(self):
        return self.member.next

    @property
    def is_out(self):
        return bool(self.member.is_out)

    @property
    def packet_max(self):
        return self.member.packet_max

    def state(self):
        """What a joiner gets, as of what is applied here."""
        cdef int i
        self.check()
        return State(self.member.next, self.member.members,
                     tuple([self.member.incarnations[i] for i in range(RING_ROWS)]),
                     tuple([self.member.tickets[i] for i in range(RING_ROWS)]))

    def map_lane(self, unsigned row, uint32_t incarnation, int fd):
        """Map the lane of another member; False for one of a former holder of the row."""
        cdef const unsigned char* lane = NULL
        cdef int failed
        self.check()
        if row >= RING_ROWS or row == self.member.row:
            raise ValueError(f"row {row} is not of another member")
        failed = ring_open_lane(fd, self.member.lane_size, &lane)
        if failed:
            self.fail(failed)
        if not ring_map_lane(&self.member, row, incarnation, lane):
            munmap(<void*>lane, self.member.lane_size)
            return False
        self.unmap(self.lane_of.get(row, 0))
        self.lane_of[row] = <uintptr_t>lane
        return True

    cdef void unmap(self, uintptr_t address) noexcept:
        if address:
            munmap(<void*>address, self.member.lane_size)

    def use_eventfd(self):
        """Be woken by the own eventfd from now on; False while not all have applied the own view."""
        self.check()
        return bool(ring_use_eventfd(&self.member, self.pid))

    def set_eventfd(self, unsigned row, int fd):
        """The eventfd by which another member is woken, which stays open as long as this object."""
        self.check()
        if row >= RING_ROWS:
            raise ValueError(f"an order has {RING_ROWS} rows")
        self.member.eventfds[row] = fd

    def offer_row(self):
        """An unused row and its next incarnation, offered to a joiner."""
        cdef uint32_t incarnation = 0
        cdef int row
        self.check()
        row = ring_offer_row(&self.member, &incarnation)
        if row < 0:
            self.fail(row)
        return row, incarnation

    def strike(self, unsigned row, uint32_t incarnation):
        """A member counts no more; its expulsion is to follow. Whether it was struck here."""
        self.check()
        if row >= RING_ROWS:
            raise ValueError(f"an order has {RING_ROWS} rows")
        return bool(ring_strike(&self.member, row, incarnation))

    def append(self, bytes data not None, uint32_t count=1):
        """Put a packet into the order; returns its slot, or None if there is no room yet.

        Raises Expelled if this member is out. Apply next, and `wake` in any case.
        """
        cdef unsigned char* room = NULL
        cdef int64_t slot
        cdef uint32_t size = <uint32_t>min(len(data), <Py_ssize_t>0x7FFFFFFF)
        self.check()
        slot = ring_room(&self.member, size, &room)
        if slot == 0:
            memcpy(room, <const char*>data, size)
            slot = ring_append(&self.member, size, count)
        return self.slot_of(slot)

    def append_view(self, unsigned kind, unsigned row, uint32_t incarnation):
        """Put a view into the order, as `append`."""
        self.check()
        if not RING_JOIN <= kind <= RING_EXPEL or row >= RING_ROWS:
            raise ValueError(f"no view: kind {kind}, row {row}")
        return self.slot_of(ring_append_view(&self.member, kind, row, incarnation))

    cdef slot_of(self, int64_t slot):
        if slot >= 0:
            return slot
        if slot == RING_FULL:
            return None
        self.fail(slot)

    def apply(self, Py_ssize_t limit=1 << 30):
        """The entries since the last call, as far as there are any, in order.

        Raises Expelled if this member is out, and ProtocolError if what is in memory cannot be: in the
        next call, if there were entries before it.
        """
        cdef ring_entry entry
        cdef int found = 0
        cdef list entries = []
        self.check()
        memset(&entry, 0, sizeof(entry))
        while len(entries) < limit:
            found = ring_next(&self.member, &entry)
            if found <= 0:
                break
            data = b"" if entry.kind else (<const char*>entry.bytes)[:entry.size]
            if not entry.kind and not ring_is_in(&self.member):
                found = RING_OUT
                break
            entries.append(Entry(entry.slot, entry.row, entry.kind,
                                 entry.incarnation if entry.kind else 0,
                                 0 if entry.kind else entry.count, data))
            ring_applied(&self.member, &entry)
        if entries or found == 0:
            ring_advance(&self.member)
        if found < 0 and not entries:
            self.fail(found)
        return entries

    def has_news(self):
        """Whether there is something to apply, or this member is out."""
        self.check()
        return bool(ring_has_news(&self.member))

    def wake(self):
        """Wake the members that sleep and want it, after an append."""
        self.check()
        with nogil:
            ring_wake(&self.member, RING_ANYTHING, 0)

    def arm_eventfd(self):
        """Ask for the own eventfd to be written at the next news; whether there is news already."""
        self.check()
        return bool(ring_arm_eventfd(&self.member, RING_ANYTHING))

    def sleep(self, int policy, double seconds, double linger=0.001):
        """Sleep until there is news, by a policy, so many seconds at most; then apply."""
        cdef int64_t ns = <int64_t>(seconds * 1e9), linger_ns = <int64_t>(linger * 1e9)
        self.check()
        with nogil:
            ring_sleep(&self.member, policy, ns, linger_ns)

    cdef bint listen(self, uint64_t interest) noexcept:
        """Have a thread that dozes woken by the next news of interest; whether there is any news already."""
        self.alarm = ring_alarm_now(&self.member)
        return ring_arm(&self.member, interest)

    cdef void ignore_news(self) noexcept:
        """Have a thread that dozes sleep until it is woken, whatever news there was before."""
        self.alarm = ring_alarm_now(&self.member)

    cdef int doze(self, int64_t ns) except -1:
        cdef ring_order* order = self.member.order
        cdef unsigned row = self.member.row
        cdef uint32_t before = self.alarm
        if order is NULL:
            return 0
        self.dozing += 1
        with nogil:
            ring_rest(order, row, before, ns)
        self.dozing -= 1
        if self.left is not NULL and not self.dozing:
            munmap(self.left, self.order_size)
            self.left = NULL
        return 0

    cdef int rouse(self) noexcept:
        if self.dozing and self.member.order is not NULL and self.pid == getpid():  # a forked child has no memory
            ring_alarm(&self.member, 1ull << self.member.row)
        return 0

    def wait_for_room(self, double seconds):
        """Sleep until another member has applied, so many seconds at most."""
        cdef int64_t ns = <int64_t>(seconds * 1e9)
        self.check()
        with nogil:
            ring_wait_for_room(&self.member, ns)

    def mark(self, uint64_t slot, uint64_t digest):
        """Compare a digest of all below a slot, a multiple of 1,024, with the others'."""
        self.check()
        return bool(ring_mark(&self.member, slot, digest))

    def status(self):
        """What can be seen: positions, rows, sleepers, and counts of this member's own."""
        cdef int row
        cdef uint64_t sleepers, waiters
        self.check()
        sleepers, waiters = ring_sleepers_of(&self.member), ring_waiters_of(&self.member)
        rows = []
        for row in range(RING_ROWS):
            word = ring_state_at(&self.member, row)
            if ring_state_of(word):
                rows.append({
                    "row": row,
                    "incarnation": ring_incarnation_of(word),
                    "state": STATES[ring_state_of(word)],
                    "applied": ring_applied_at(&self.member, row),
                    "process": <uint32_t>ring_holder_at(&self.member, row),
                    "wants to be woken": bool(sleepers >> row & 1),
                    "by news of": ring_interest_at(&self.member, row),
                    "waits for room": bool(waiters >> row & 1),
                })
        return {
            "slots": self.member.mask + 1,
            "lane size": self.member.lane_size,
            "next": self.member.next,
            "least": ring_renew_least(&self.member),
            "lap": self.member.next >> self.member.slots_log,
            "row": self.member.row,
            "rows": rows,
            "wakes": self.member.wakes,
            "retries": self.member.retries,
            "fulls": self.member.fulls,
            "waits": self.member.waits,
        }

    def sizes(self):
        """Bytes of the order segment and of a lane."""
        return self.order_size, self.member.lane_size

    def overwrite(self, uint64_t offset, bytes data not None, bint in_lane=False):
        """Damage the segment, or the own lane, as a broken member can: for tests."""
        cdef uint64_t size = self.member.lane_size if in_lane else self.order_size
        cdef uint8_t* memory = self.member.own_lane if in_lane else <uint8_t*>self.member.order
        self.check()
        if offset > size or <uint64_t>len(data) > size - offset:
            raise ValueError("outside of the segment")
        memcpy(memory + offset, <const char*>data, len(data))

    cdef int check(self) except -1:
        if self.member.order is NULL or self.member.own_lane is NULL:
            raise ValueError("this segment is closed")
        if self.pid != getpid():
            raise RuntimeError("a forked process has no part in its parent's group: join it anew")
        return 0

    cdef fail(self, int64_t code):
        """Raise what a code of C stands for."""
        if code == RING_OUT:
            raise Expelled(f"row {self.member.row} is out of the order, at slot {self.member.next}")
        raise fault_of(code, f"slot {self.member.next} of ")

    def close(self):
        """Unmap everything. Descriptors of the order and of the own lane that were made here close."""
        if self.pid == getpid():
            for address in self.lane_of.values():
                self.unmap(address)
            self.unmap(<uintptr_t>self.member.own_lane)
            if self.member.order is not NULL and self.dozing:
                self.rouse()
                self.left = self.member.order       # the thread that wakes unmaps it
            elif self.member.order is not NULL:
                munmap(self.member.order, self.order_size)
        self.lane_of.clear()
        memset(&self.member, 0, sizeof(ring_member))
        for fd in (self.order_fd, self.lane_fd):
            if fd >= 0:
                close(fd)
        self.order_fd = self.lane_fd = -1


def fault_of(int64_t code, place=""):
    """The exception for a code of C, met at a slot."""
    if code <= FIRST_OF_SEGMENTS:
        return ProtocolError(f"a segment of shared memory cannot be used: {FAULTS[code]}")
    if code not in FAULTS:
        return OSError(-code, strerror(<int>-code).decode())
    if code in (-3, -11, -12):
        return ProtocolError(f"the order in shared memory: {FAULTS[code]}")
    return DamagedMemory(f"{place}the order in shared memory cannot be: {FAULTS[code]}")


cdef bytes memory_name(str group):
    """What the kernel shows as the name of the memory of a group's order."""
    return (PREFIX + group).encode(errors="replace").replace(b"\0", b"?")[:NAME_MAX]


cdef int checked_ids(bytes group, bytes boot) except -1:
    if len(group) != RING_ID_SIZE or len(boot) != RING_ID_SIZE:
        raise ValueError(f"the ids of a group and of a boot have {RING_ID_SIZE} bytes")
    return 0
