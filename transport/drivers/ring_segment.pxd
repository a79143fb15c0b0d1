"""A member's part of the order in shared memory: its mappings, and what it keeps for itself."""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t

from orcalike.transport.layers.base cimport Futex

cdef extern from "ring/order.h" nogil:
    uint64_t RING_ANYTHING
    enum:
        RING_ROWS
        RING_ID_SIZE
        RING_HAS_EVENTFD
        RING_JOIN
        RING_LEAVE
        RING_EXPEL
        RING_FULL
        RING_LOST
        RING_OUT
        RING_AT_ONCE
        RING_LAZY

    struct ring_header:
        uint32_t slots_log
        uint32_t lane_size

    struct ring_order:
        ring_header header

    # Positions and tables are described in transport/ring/member.h.
    struct ring_member:
        ring_order* order
        uint64_t mask
        uint32_t slots_log, lane_size, packet_max
        unsigned row
        uint32_t incarnation
        int is_out
        uint64_t next, scanned, least, handed
        unsigned char* own_lane
        uint64_t head, freed
        uint64_t members
        uint32_t incarnations[64]
        uint64_t tickets[64]
        uint64_t left_at[64]
        const unsigned char* lanes[64]
        int eventfds[64]
        uint64_t wakes, retries, fulls, waits

    struct ring_entry:
        uint64_t slot
        unsigned row
        unsigned kind
        uint32_t incarnation
        uint32_t size, count
        const unsigned char* bytes

    void ring_begin(ring_member* m, ring_order* order, uint32_t slots_log, uint32_t lane_size,
                    uint64_t next)
    int ring_found(ring_member* m, unsigned row, uint32_t incarnation, uint32_t pid)
    int ring_take_row(ring_member* m, unsigned row, uint32_t incarnation, uint32_t pid)
    int ring_offer_row(ring_member* m, uint32_t* incarnation)
    int ring_map_lane(ring_member* m, unsigned row, uint32_t incarnation,
                      const unsigned char* lane)
    int ring_use_eventfd(ring_member* m, uint32_t pid)
    int ring_strike(ring_member* m, unsigned row, uint32_t incarnation)
    int ring_room(ring_member* m, uint32_t size, unsigned char** bytes)
    int64_t ring_append(ring_member* m, uint32_t size, uint32_t count)
    int64_t ring_append_view(ring_member* m, unsigned kind, unsigned row, uint32_t incarnation)
    int ring_next(ring_member* m, ring_entry* entry)
    int ring_is_in(ring_member* m)
    void ring_applied(ring_member* m, const ring_entry* entry)
    int ring_applied_own(ring_member* m)
    int ring_advance(ring_member* m)
    int ring_has_news(const ring_member* m)
    void ring_wake(ring_member* m, uint64_t about, uint64_t due)
    void ring_wake_all(ring_member* m)
    int ring_arm(ring_member* m, uint64_t interest)
    uint32_t ring_alarm_now(ring_member* m)
    void ring_rest(ring_order* order, unsigned row, uint32_t before, int64_t ns) nogil
    void ring_alarm(ring_member* m, uint64_t rows)
    int ring_arm_eventfd(ring_member* m, uint64_t interest)
    void ring_sleep(ring_member* m, int policy, int64_t ns, int64_t linger_ns)
    void ring_wait_for_room(ring_member* m, int64_t ns)
    uint64_t ring_renew_least(ring_member* m)
    int ring_mark(ring_member* m, uint64_t slot, uint64_t digest)


cdef class Segment(Futex):
    """The mappings live as long as this object. One thread at a time uses it, and one may sleep meanwhile."""
    cdef ring_member member         # the C interface: what a layer appends by and applies from
    cdef readonly int order_fd      # -1 once closed
    cdef readonly int lane_fd       # of the own lane: others can map it to read
    cdef int pid                    # a forked child has no mappings
    cdef uint64_t order_size
    cdef uint32_t alarm             # the own alarm, as this member has listened last
    cdef int dozing                 # threads that sleep on it
    cdef ring_order* left           # the order, where it was closed and they still sleep
    cdef dict lane_of               # by row: where another member's lane is mapped

    cdef int begin(self, ring_order* order, uint32_t slots_log, uint32_t lane_size,
                   uint64_t next) except -1
    cdef int map_own_lane(self) except -1
    cdef void unmap(self, uintptr_t address) noexcept
    cdef bint listen(self, uint64_t interest) noexcept
    cdef void ignore_news(self) noexcept
    cdef slot_of(self, int64_t slot)
    cdef int check(self) except -1
    cdef fail(self, int64_t code)
