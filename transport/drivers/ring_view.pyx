"""An order in shared memory as one sees it that takes no part in it: `orcalike status --ring`.

The memory is mapped to be read only, and nothing in it is trusted. Members go on meanwhile, so what is read is of no one
moment: a position may be some slots old.
"""

from collections import namedtuple

from libc.stdint cimport uint32_t, uint64_t

from orcalike.transport.drivers.mapped_order import boot_id
from orcalike.transport.drivers.ring_segment import fault_of

from orcalike.transport.drivers.ring_segment cimport RING_ROWS, ring_header, ring_order

cdef extern from "<sys/mman.h>" nogil:
    int munmap(void* address, size_t size)

cdef extern from "ring/order.h" nogil:
    uint64_t RING_IS_ARMED
    int ring_state_of(uint32_t word)
    uint32_t ring_incarnation_of(uint32_t word)
    int ring_counts(uint32_t word)
    uint64_t ring_lap_of(uint64_t word)

cdef extern from "ring/system.h" nogil:
    int ring_look_at_order(int fd, const unsigned char* boot, ring_order** order, ring_header* header)
    uint64_t ring_order_size(uint32_t slots_log)

cdef extern from *:
    """
    #define seen_applied(order, row) ring_get_relaxed(&(order)->rows[row].applied)
    #define seen_state(order, row) ring_get_relaxed(&(order)->rows[row].state)
    #define seen_holder(order, row) ring_get_relaxed(&(order)->rows[row].holder)
    #define seen_sleepers(order) ring_get_relaxed(&(order)->sleepers)
    #define seen_waiters(order) ring_get_relaxed(&(order)->room_waiters)
    #define seen_slot(order, place) ring_get_relaxed(&(order)->slots[place])
    #define lap_there(slot, slots_log) ((((slot) >> (slots_log)) + 1) & RING_LAP_MASK)
    """
    uint64_t seen_applied(ring_order* order, unsigned row) nogil
    uint32_t seen_state(ring_order* order, unsigned row) nogil
    uint64_t seen_holder(ring_order* order, unsigned row) nogil
    uint64_t seen_sleepers(ring_order* order) nogil
    uint64_t seen_waiters(ring_order* order) nogil
    uint64_t seen_slot(ring_order* order, uint64_t place) nogil
    uint64_t lap_there(uint64_t slot, uint32_t slots_log) nogil

OrderView = namedtuple("OrderView", "slots lane_bytes next least lap rows", module=__name__)
RowView = namedtuple("RowView", "row incarnation state process applied lag sleeps waits_for_room",
                     module=__name__)

cdef list STATES = ["free", "joining", "member", "struck"]


def look(int fd):
    """The order whose memory a descriptor is; raises OSError, ProtocolError if it is none of this host's."""
    cdef ring_order* order = NULL
    cdef ring_header header
    cdef bytes boot = boot_id()
    cdef int failed = ring_look_at_order(fd, boot, &order, &header)
    if failed:
        raise fault_of(failed)
    try:
        return seen(order, header.slots_log, header.lane_size)
    finally:
        munmap(order, ring_order_size(header.slots_log))


cdef seen(ring_order* order, uint32_t slots_log, uint32_t lane_bytes):
    cdef uint64_t furthest = 0, least = <uint64_t>-1, applied, slots = <uint64_t>1 << slots_log, left = slots
    cdef unsigned row
    for row in range(<unsigned>RING_ROWS):
        if ring_counts(seen_state(order, row)):
            applied = seen_applied(order, row)
            furthest, least = max(furthest, applied), min(least, applied)
    while left and ring_lap_of(seen_slot(order, furthest & (slots - 1))) == lap_there(furthest, slots_log):
        furthest += 1
        left -= 1
    rows = [row_of(order, row, furthest) for row in range(<unsigned>RING_ROWS) if ring_state_of(seen_state(order, row))]
    return OrderView(slots, lane_bytes, furthest, min(least, furthest), furthest >> slots_log, rows)


cdef row_of(ring_order* order, unsigned row, uint64_t next):
    cdef uint32_t word = seen_state(order, row)
    cdef uint64_t applied = seen_applied(order, row), holder = seen_holder(order, row)
    cdef bint sleeps = seen_sleepers(order) >> row & 1 or holder & RING_IS_ARMED
    return RowView(row, ring_incarnation_of(word), STATES[ring_state_of(word)], <uint32_t>holder, applied,
                   max(next, applied) - applied, sleeps, bool(seen_waiters(order) >> row & 1))
