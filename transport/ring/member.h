/* What a member keeps for itself of the order: positions, what it knows of the others, its lane.
 *
 * One thread at a time uses it. The positions, of slots:
 *
 *     least <= next <= scanned,   scanned - least <= slots
 *
 * `next` is applied next; no news is below `scanned` that this member, as a writer, must know; all
 * members have applied what is below `least`, which is a lower bound, renewed when it is needed.
 * Of the own lane, in bytes since the beginning: freed <= head, head - freed <= lane_size.
 */
#ifndef ORCALIKE_RING_MEMBER_H
#define ORCALIKE_RING_MEMBER_H

#include "layout.h"

enum { RING_CHECKPOINTS = 64 };

/* All of the own lane below `end` is free when all have applied `slot`. */
struct ring_checkpoint {
    uint64_t slot, end;
};

/* What this member has written into its own row last, which no other may change (own_row.h); 0: nothing yet. */
struct ring_said {
    uint32_t state;
    uint64_t holder, begun, alone, left_out;
};

struct ring_member {
    struct ring_order *order;
    uint64_t mask; /* slots - 1 */
    uint32_t slots_log, lane_size, packet_max;
    unsigned row;
    uint32_t incarnation;
    int is_out;
    int had_news; /* since it last slept: for `linger` */
    uint32_t view;    /* the number of the view that the next fence ends; 0: no fence is expected */
    uint32_t reserve; /* slots that packets leave to fences */

    uint64_t next, scanned, least;
    uint64_t handed; /* all below has run here: `next` is ahead while a thread hands up what it has taken */
    uint64_t published; /* of `next`, in the own row */
    struct ring_said said;
    uint64_t began; /* the slot after the view in which this member joined */
    uint64_t half_at; /* the slot from which the others are to be woken again, at half a ring */

    unsigned char *own_lane;
    uint64_t head, freed, checkpointed;
    uint64_t last_slot; /* of the packet before `head` */
    uint32_t room; /* bytes that may be written at `head` */
    uint32_t checkpoint_first, checkpoint_count;
    struct ring_checkpoint checkpoints[RING_CHECKPOINTS];

    /* Of the rows, as of `next`: the same at all members, but for lanes and eventfds. */
    uint64_t members; /* a bit for each row in the view */
    uint32_t incarnations[RING_ROWS]; /* the last that has joined or left */
    uint64_t tickets[RING_ROWS]; /* of the last packet; 0: not known */
    uint64_t left_at[RING_ROWS]; /* the slot of the view in which the last holder left */
    uint32_t lane_incarnations[RING_ROWS];
    const unsigned char *lanes[RING_ROWS];
    int eventfds[RING_ROWS];
    uint64_t ticket; /* of the own last packet */

    uint64_t wakes, retries, fulls, waits; /* counted for `status` */
};

static inline uint64_t ring_slots(const struct ring_member *m) { return m->mask + 1; }
static inline uint64_t ring_own_bit(const struct ring_member *m) { return 1ull << m->row; }
static inline _Atomic uint64_t *ring_slot(const struct ring_member *m, uint64_t slot)
{
    return &m->order->slots[slot & m->mask];
}
static inline uint64_t ring_lap_before(const struct ring_member *m, uint64_t slot)
{
    return slot >> m->slots_log & RING_LAP_MASK;
}
static inline uint64_t ring_lap(const struct ring_member *m, uint64_t slot)
{
    return ((slot >> m->slots_log) + 1) & RING_LAP_MASK;
}

/* Whether there is something to take.
 *
 * Any lap but the one before is news. With `== lap` a member that was expelled and overrun would see
 * none for good, and read old values. */
static inline int ring_has_news(const struct ring_member *m)
{
    uint64_t word = ring_get_acquire(ring_slot(m, m->next));
    return ring_lap_of(word) != ring_lap_before(m, m->next);
}

/* Whether something has not run here, taken or not: what each read looks at. */
static inline int ring_is_stale(const struct ring_member *m)
{
    return m->handed != m->next || ring_has_news(m);
}

/* Whether another member has not applied this member's last packet, or there is no other member: then no one
 * gains if the next packet leaves at once. */
static inline int ring_is_behind(const struct ring_member *m)
{
    uint64_t others = m->members & ~ring_own_bit(m);
    int is_alone = !others;
    if (m->last_slot == UINT64_MAX)
        return is_alone;
    for (; others; others &= others - 1) {
        unsigned row = (unsigned)__builtin_ctzll(others);
        uint32_t word = ring_get_acquire(&m->order->rows[row].state);
        if (ring_counts(word) && ring_incarnation_of(word) == m->incarnations[row]
            && ring_get_acquire(&m->order->rows[row].applied) <= m->last_slot)
            return 1;
    }
    return is_alone;
}

/* Whether half a ring waits to be applied. */
static inline int ring_is_half_behind(const struct ring_member *m)
{
    uint64_t slot = m->next + ring_slots(m) / 2;
    return ring_lap_of(ring_get_acquire(ring_slot(m, slot))) != ring_lap_before(m, slot);
}

/* Whether the own row has not been struck; `is_out` stays when it has. The fence: bytes that were read
 * before it were those of a member that counted, and so were not overwritten. */
static inline int ring_is_in(struct ring_member *m)
{
    uint32_t word;
    atomic_thread_fence(memory_order_acquire);
    word = ring_get_ordered(&m->order->rows[m->row].state);
    if (!ring_counts(word) || ring_incarnation_of(word) != m->incarnation)
        m->is_out = 1;
    return !m->is_out;
}

/* Renew `least`: over the members of the view as of `next` that are not struck.
 *
 * It is at most `next`. So a joiner that is not in the view yet need not be counted: the slot of its view
 * is at or above `next`, and it applies from there. */
static inline uint64_t ring_renew_least(struct ring_member *m)
{
    uint64_t least = m->next;
    ring_fence(); /* after the own bit in room_waiters */
    for (uint64_t left = m->members; left; left &= left - 1) {
        unsigned row = (unsigned)__builtin_ctzll(left);
        uint32_t word = ring_get_acquire(&m->order->rows[row].state);
        if (ring_counts(word) && ring_incarnation_of(word) == m->incarnations[row]) {
            uint64_t applied = ring_get_acquire(&m->order->rows[row].applied);
            if (applied < least)
                least = applied;
        }
    }
    ring_fence(); /* before bytes of the lane are overwritten that a struck member may read */
    return m->least = least;
}

/* Begin as the holder of a row, with all below `next` applied, in an order whose sizes are checked. */
static inline void ring_begin(struct ring_member *m, struct ring_order *order, uint32_t slots_log,
                              uint32_t lane_size, uint64_t next)
{
    memset(m, 0, sizeof *m);
    m->order = order;
    m->slots_log = slots_log;
    m->mask = (1ull << slots_log) - 1;
    m->lane_size = lane_size;
    m->packet_max = lane_size / 4 - RING_HEAD;
    m->next = m->scanned = m->began = next;
    m->half_at = next;
    m->last_slot = UINT64_MAX;
    for (unsigned row = 0; row < RING_ROWS; row++) {
        m->eventfds[row] = -1;
        m->left_at[row] = next;
    }
}

#endif
