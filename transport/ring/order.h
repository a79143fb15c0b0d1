/* The order: packets are put into it, and applied out of it, by each member at its own pace.
 *
 * To write: `ring_room`, marshal into the lane in place, `ring_append`, apply all up to the slot that it
 * returns, `ring_wake` (also after a view, and if this member is out by then). To apply: `ring_next` until it returns 0, and for each entry: decode,
 * `ring_is_in`, call, `ring_applied`; then `ring_advance`. To read: if `ring_is_stale`, apply first.
 *
 * A packet is in the order from one compare-and-swap on. No member holds anything meanwhile, so no
 * member's end or sleep stops the others, and nothing is to be repaired.
 */
#ifndef ORCALIKE_RING_ORDER_H
#define ORCALIKE_RING_ORDER_H

#include "fence.h"

/* Writing. */

/* Free what all members have applied of the own lane. */
static inline void ring_free_lane(struct ring_member *m)
{
    uint64_t least = ring_renew_least(m);
    while (m->checkpoint_count) {
        struct ring_checkpoint *first = &m->checkpoints[m->checkpoint_first];
        if (first->slot >= least)
            return;
        m->freed = first->end;
        m->checkpoint_first = (m->checkpoint_first + 1) % RING_CHECKPOINTS;
        m->checkpoint_count--;
    }
    if (m->last_slot == UINT64_MAX || m->last_slot < least)
        m->freed = m->checkpointed = m->head;
}

/* Room for a packet of up to `size` bytes in the own lane, contiguous. Returns 0 and where to write it, or
 * RING_FULL, RING_TOO_LARGE. Nothing is visible to others yet. */
static inline int ring_room(struct ring_member *m, uint32_t size, unsigned char **bytes)
{
    uint64_t lane_mask = m->lane_size - 1, head = m->head, need;
    m->room = 0;
    if (size > m->packet_max)
        return RING_TOO_LARGE;
    need = (RING_HEAD + (uint64_t)size + 7) & ~7ull;
    if ((head & lane_mask) + need > m->lane_size)
        head = (head | lane_mask) + 1;
    if (head + need - m->freed > m->lane_size) {
        ring_free_lane(m);
        if (m->freed == m->head)
            m->freed = m->checkpointed = m->head = head;
        if (head + need - m->freed > m->lane_size) {
            m->fulls++;
            return RING_FULL;
        }
    }
    m->head = head;
    m->room = size;
    *bytes = m->own_lane + (head & lane_mask) + RING_HEAD;
    return 0;
}

/* A slot of neither lap: this member is expelled and was overrun, or the memory is damaged. */
static inline int ring_overrun(struct ring_member *m) { return ring_is_in(m) ? RING_BAD_LAP : RING_OUT; }

/* Swap a word into the next slot. Returns the slot, or RING_FULL, RING_OUT, RING_FENCED, RING_BAD_LAP,
 * RING_BAD_VIEW. */
static inline int64_t ring_put_word(struct ring_member *m, uint64_t word)
{
    uint64_t most = word & RING_IS_VIEW ? m->mask : m->mask - m->reserve;
    while (!m->is_out) {
        uint64_t s = m->scanned;
        int met = 0;
        uint64_t found = ring_get_acquire(ring_slot(m, s)), lap = ring_lap_of(found);
        if (lap == ring_lap_before(m, s)) {
            if (s - m->least > most && s - ring_renew_least(m) > most) {
                m->fulls++;
                return RING_FULL;
            }
            if (ring_swap_if(ring_slot(m, s), &found, ring_lap(m, s) << 33 | word)) {
                m->scanned = s + 1;
                return (int64_t)s;
            }
            m->retries++;
            continue;
        }
        if (lap != ring_lap(m, s))
            return ring_overrun(m);
        if (found & RING_IS_VIEW)
            met = ring_meet_view(m, found);
        if (met)
            return met;
        m->scanned = s + 1;
    }
    return RING_OUT;
}

/* Wake the members that are half a ring, or half of the own lane, behind; not at each packet. */
static inline void ring_wake_at_half(struct ring_member *m, uint64_t slot)
{
    uint64_t half = ring_slots(m) / 2;
    int is_half = slot - m->least >= half && slot >= m->half_at;
    if (__builtin_expect(is_half, 0)) {
        m->half_at = slot + half / 4;
        if (slot - ring_renew_least(m) >= half)
            ring_wake_all(m);
    }
}

static inline void ring_checkpoint(struct ring_member *m, uint64_t slot)
{
    unsigned at = (m->checkpoint_first + m->checkpoint_count) % RING_CHECKPOINTS;
    if (m->head - m->checkpointed < m->lane_size / RING_CHECKPOINTS
        || m->checkpoint_count == RING_CHECKPOINTS)
        return;
    m->checkpoints[at].slot = slot;
    m->checkpoints[at].end = m->checkpointed = m->head;
    m->checkpoint_count++;
    if (m->head - m->freed > m->lane_size / 2 && m->checkpoint_count % 8 == 0) {
        ring_free_lane(m);
        if (m->head - m->freed > m->lane_size / 2)
            ring_wake_all(m);
    }
}

/* Put the packet of `size` bytes that was written after `ring_room` into the order. Returns its slot: the
 * write has happened. Or RING_FULL: try again later, the bytes stay; RING_OUT; or a fault. */
static inline int64_t ring_append(struct ring_member *m, uint32_t size, uint32_t count)
{
    uint64_t offset = m->head & (m->lane_size - 1);
    struct ring_packet packet = {size, count, m->ticket + 1};
    int64_t slot;
    if (size > m->room || offset + RING_HEAD + m->room > m->lane_size)
        return RING_TOO_LARGE;
    memcpy(m->own_lane + offset, &packet, sizeof packet);
    slot = ring_put_word(m, ring_packet_word(m->row, offset));
    if (slot < 0)
        return slot;
    m->ticket++;
    m->room = 0;
    m->head += (RING_HEAD + (uint64_t)size + 7) & ~7ull;
    m->last_slot = (uint64_t)slot;
    ring_checkpoint(m, (uint64_t)slot);
    ring_wake_at_half(m, (uint64_t)slot);
    return slot;
}

/* Put a view into the order. Returns as `ring_append`. */
static inline int64_t ring_append_view(struct ring_member *m, unsigned kind, unsigned row,
                                       uint32_t incarnation)
{
    int64_t slot = ring_put_word(m, ring_view_word(kind, row, incarnation));
    if (slot >= 0)
        ring_wake_at_half(m, (uint64_t)slot);
    return slot;
}

/* End the view: put its fence into the order, if it is not there. Returns 0 (it is), or as `ring_put_word`. */
static inline int ring_append_fence(struct ring_member *m)
{
    int64_t slot = ring_put_word(m, ring_fence_word(m->view));
    return slot >= 0 || slot == RING_FENCED ? 0 : (int)slot;
}

/* Applying. */

struct ring_entry {
    uint64_t slot, word;
    unsigned row;
    unsigned kind; /* 0: a packet; else of a view */
    uint32_t incarnation; /* of a view */
    uint32_t size, count;
    uint64_t ticket;
    const unsigned char *bytes;
};

/* Bound a packet by its lane. What is in the lane can change under a broken sender: each word is read
 * once, and what is decoded from `bytes` must be bounded by `size` again. */
static inline int ring_find_packet(const struct ring_member *m, struct ring_entry *entry)
{
    uint64_t offset = ring_offset_of(entry->word);
    struct ring_packet packet;
    unsigned row = ring_row_of(entry->word);
    entry->row = row;
    if (row >= RING_ROWS || !(m->members >> row & 1))
        return RING_BAD_ROW;
    if (m->lanes[row] == NULL || m->lane_incarnations[row] != m->incarnations[row])
        return RING_NO_LANE;
    if (offset + RING_HEAD > m->lane_size)
        return RING_BAD_OFFSET;
    memcpy(&packet, m->lanes[row] + offset, sizeof packet);
    if (packet.size > m->packet_max || offset + RING_HEAD + packet.size > m->lane_size)
        return RING_BAD_SIZE;
    if (m->tickets[row] + 1 != packet.ticket && (m->tickets[row] || row == m->row))
        return RING_BAD_TICKET;
    entry->size = packet.size;
    entry->count = packet.count;
    entry->ticket = packet.ticket;
    entry->bytes = m->lanes[row] + offset + RING_HEAD;
    return 1;
}

/* The entry at `next`. Returns 1, 0 if there is no news, RING_OUT, RING_FENCED, or a fault. A fault of a packet counts
 * only if `ring_is_in` after it: else another has overwritten what is read. */
static inline int ring_next(struct ring_member *m, struct ring_entry *entry)
{
    uint64_t word = ring_get_acquire(ring_slot(m, m->next)), lap = ring_lap_of(word);
    int found;
    if (m->is_out)
        return RING_OUT;
    if (lap == ring_lap_before(m, m->next))
        return 0;
    if (lap != ring_lap(m, m->next))
        return ring_overrun(m);
    entry->slot = m->next;
    entry->word = word;
    entry->kind = 0;
    if (!(word & RING_IS_VIEW)) {
        found = ring_find_packet(m, entry);
        return found > 0 || ring_is_in(m) ? found : RING_OUT;
    }
    found = ring_meet_view(m, word);
    if (found)
        return found;
    entry->kind = ring_view_kind_of(word);
    entry->row = ring_view_row_of(word);
    entry->incarnation = ring_view_incarnation_of(word);
    return 1;
}

/* The entry is applied: go on to the next one. */
static inline void ring_applied(struct ring_member *m, const struct ring_entry *entry)
{
    if (entry->kind)
        ring_apply_view(m, entry->slot, entry->word);
    else
        m->tickets[entry->row] = entry->ticket;
    m->had_news = 1;
    m->next = entry->slot + 1;
    if (m->scanned < m->next)
        m->scanned = m->next;
}

/* The same of the own packet that was put into the order at `next`: nothing of it is to be found out, and who swapped
 * that slot was in (fence.h). */
static inline int ring_applied_own(struct ring_member *m)
{
    if (m->last_slot != m->next)
        return 0; /* something else comes first */
    m->tickets[m->row] = m->ticket;
    m->had_news = 1;
    m->next++;
    return 1;
}

/* Compare digests. */

/* At a slot that is a multiple of RING_MARK_EVERY: the digest of all below. The first member to come
 * leaves it, the others compare. Returns whether they agree. One word, so that it is never half
 * written: number of the mark (20 bits) | digest (44). */
static inline int ring_mark(struct ring_member *m, uint64_t slot, uint64_t digest)
{
    uint64_t number = slot / RING_MARK_EVERY;
    _Atomic uint64_t *mark = &m->order->marks[number % RING_MARKS];
    uint64_t own = (number & 0xfffff) << 44 | (digest & 0xfffffffffffull);
    uint64_t found = ring_get_acquire(mark);
    for (;;) {
        uint32_t ahead = (uint32_t)((found >> 44) - (own >> 44)) & 0xfffff;
        if (ahead == 0 && found)
            return found == own;
        if (ahead < 0x80000 && found)
            return 1; /* a later one: this member is far behind */
        if (ring_swap_if(mark, &found, own))
            return 1;
    }
}

#endif
