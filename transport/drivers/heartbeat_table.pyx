"""The table of the heartbeats: a slot for each endpoint that beats, with a contact for each member.

The table belongs to one process. Threads that run Python and the thread of the heartbeats
(`heartbeat_thread.pyx`) change it, each under its mutex; nothing here touches a Python object.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from orcalike.transport.drivers.driver cimport monotonic

cdef int64_t IDLE = 3600000000000   # ns: how often one wakes that has no peers


cdef EndpointSlot* slot_of(Table* table, uint64_t incarnation) noexcept nogil:
    cdef int i
    for i in range(table.slot_count):
        if table.slots[i].incarnation == incarnation:
            return &table.slots[i]
    return NULL


cdef Contact* contact_of(EndpointSlot* slot, uint64_t incarnation) noexcept nogil:
    cdef int i
    for i in range(slot.count):
        if slot.contacts[i].incarnation == incarnation:
            return &slot.contacts[i]
    return NULL


cdef EndpointSlot* take_slot(Table* table, uint64_t me, uint64_t group) noexcept nogil:
    """A free slot, for an endpoint that has no peers yet; NULL if there is none."""
    cdef EndpointSlot* slot = &table.slots[table.slot_count]
    if table.slot_count == ENDPOINTS_MAX:
        return NULL
    table.slot_count += 1
    memset(slot, 0, sizeof(EndpointSlot))
    slot.incarnation, slot.group, slot.period = me, group, IDLE
    slot.due = slot.wake = monotonic() + IDLE
    return slot


cdef int64_t lateness(EndpointSlot* slot, int64_t now) noexcept nogil:
    """How late the thread is for a slot's beats at the time `now`, if that is worth a word."""
    cdef int64_t late = now - slot.wake if slot.wake and slot.count else 0
    return late if late > slot.period // 4 else 0


cdef bint place(Table* table, uint64_t me, uint64_t group, int64_t period, Contact** given,
                int count, uint64_t lease, int64_t window) noexcept nogil:
    """Give the endpoint these contacts, and its old ones back; False if there is no room."""
    cdef EndpointSlot* slot = slot_of(table, me)
    cdef Contact* contacts = given[0]
    cdef Contact* before
    cdef bint fresh = False
    cdef int64_t now = monotonic()
    cdef int i
    if slot is NULL:
        if not count:
            return True
        slot = take_slot(table, me, group)
        if slot is NULL:
            return False
    for i in range(count):
        before = contact_of(slot, contacts[i].incarnation)
        if before is NULL:
            fresh = True
            contacts[i].since = now
            contacts[i].late = slot.late
        else:
            contacts[i].latest = before.latest
            contacts[i].known = before.known
            contacts[i].since = before.since
            contacts[i].late = before.late
            contacts[i].granted = before.granted
            contacts[i].lease = before.lease
            contacts[i].leased = before.leased
    table.beating += <int>(count > 0) - <int>(slot.count > 0)
    if not table.beating and table.watch_count and not table.look_at:
        table.look_at = now + LONG          # what began while beats looked at it
    given[0] = slot.contacts
    slot.incarnation, slot.group, slot.period = me, group, period
    slot.contacts, slot.count = contacts, count
    fresh |= lease != 0 and lease != slot.lease
    slot.lease, slot.window = lease, window
    if fresh:
        slot.due = slot.wake = 0
    if not count:
        table.slot_count -= 1
        slot[0] = table.slots[table.slot_count]
    return True
