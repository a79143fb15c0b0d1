/* Views as entries of the order: a member joins, leaves, or is expelled at a slot.
 *
 * A member that swaps a slot has scanned all below, so also its own expulsion: the order is the fence.
 *
 * An expulsion is two steps. First the row is struck, so that it counts no more; then the view is put.
 * The other way round a full ring could not take the view, as it waits for the dead. Any member may do
 * both, twice does no harm, and a member that meets the view strikes as well.
 *
 * A join: an unused row is offered, with a position at or below that of the view; the view is put at slot
 * v; the joiner gets the state as of v and applies from v + 1. It counts for each member that has applied
 * v, and the others overwrite nothing above v.
 */
#ifndef ORCALIKE_RING_VIEWS_H
#define ORCALIKE_RING_VIEWS_H

#include "waking.h"

/* A row counts no more, if it is still of this incarnation. Returns whether it was struck here. */
static inline int ring_strike(struct ring_member *m, unsigned row, uint32_t incarnation)
{
    _Atomic uint32_t *state = &m->order->rows[row].state;
    uint32_t word = ring_get_acquire(state);
    while (ring_counts(word) && ring_incarnation_of(word) == incarnation) {
        uint32_t struck = ring_state_word(incarnation, ring_sponsor_of(word), RING_STRUCK);
        if (ring_swap_if(state, &word, struck)) {
            ring_alarm_room(m);
            return 1;
        }
    }
    return 0;
}

/* Meet a view, when it is scanned, and again when it is applied. Returns 0, RING_FENCED or RING_BAD_VIEW. */
static inline int ring_meet_view(struct ring_member *m, uint64_t word)
{
    unsigned kind = ring_view_kind_of(word), row = ring_view_row_of(word);
    uint32_t incarnation = ring_view_incarnation_of(word);
    if (kind == RING_FENCE)
        return m->view && ring_fence_number_of(word) == m->view ? RING_FENCED : RING_BAD_VIEW;
    if (row >= RING_ROWS)
        return RING_BAD_VIEW;
    if (kind == RING_JOIN)
        return 0;
    ring_strike(m, row, incarnation);
    if (row == m->row && incarnation == m->incarnation)
        m->is_out = 1;
    return 0;
}

/* The view at `slot` is applied. One of a former holder of the row, put by a sponsor that went on late,
 * changes nothing: all members decide so, by what was before it in the order. */
static inline void ring_apply_view(struct ring_member *m, uint64_t slot, uint64_t word)
{
    unsigned row = ring_view_row_of(word);
    uint32_t incarnation = ring_view_incarnation_of(word);
    int is_later = ring_is_later(incarnation, m->incarnations[row]);
    if (ring_view_kind_of(word) == RING_JOIN) {
        if (is_later) {
            m->members |= 1ull << row;
            m->incarnations[row] = incarnation;
            m->tickets[row] = 0;
        }
    } else if (is_later || incarnation == m->incarnations[row]) {
        m->members &= ~(1ull << row);
        m->incarnations[row] = incarnation;
        m->left_at[row] = slot;
        if (m->lane_incarnations[row] == incarnation)
            m->lanes[row] = NULL;
    }
}

/* Map the lane of a member, or of a joiner before its view. Returns 0 for one of a former holder, which comes
 * late. */
static inline int ring_map_lane(struct ring_member *m, unsigned row, uint32_t incarnation,
                         const unsigned char *lane)
{
    int is_member = m->members >> row & 1 && incarnation == m->incarnations[row];
    int is_ahead = ring_is_later(incarnation, m->incarnations[row])
                   && ring_is_later(incarnation, m->lane_incarnations[row]);
    if (!is_member && !is_ahead)
        return 0;
    m->lanes[row] = lane;
    m->lane_incarnations[row] = incarnation;
    return 1;
}

/* Whether no member has a row or can still put it into the order: its last holder has left, and all have
 * applied that, so that none reads its lane; or it was offered by a member that has left since. */
static inline int ring_is_unused(const struct ring_member *m, unsigned row, uint32_t word)
{
    unsigned sponsor = ring_sponsor_of(word) % 64;
    if (m->members >> row & 1 || ring_state_of(word) == RING_IN)
        return 0;
    if (ring_state_of(word) == RING_STRUCK) /* with its view, which may not be applied here yet */
        return m->incarnations[row] == ring_incarnation_of(word) && m->left_at[row] < m->least;
    return ring_state_of(word) == RING_FREE || sponsor >= RING_ROWS || !(m->members >> sponsor & 1)
           || ring_sponsor(sponsor, m->incarnations[sponsor]) != ring_sponsor_of(word);
}

/* Offer an unused row to a joiner. Returns it, with its incarnation, or RING_NO_ROW. */
static inline int ring_offer_row(struct ring_member *m, uint32_t *incarnation)
{
    unsigned sponsor = ring_sponsor(m->row, m->incarnation);
    uint64_t position;
    uint32_t own;
    ring_renew_least(m);
    for (unsigned row = 0; row < RING_ROWS; row++) {
        struct ring_row *offered = &m->order->rows[row];
        uint32_t word = ring_get_acquire(&offered->state);
        if (!ring_is_unused(m, row, word))
            continue;
        *incarnation = ring_next_incarnation(ring_incarnation_of(word));
        own = ring_state_word(*incarnation, sponsor, RING_JOINING);
        position = ring_get_acquire(&offered->applied);
        if (ring_swap_if(&offered->state, &word, own)) {
            while (!ring_swap_if(&offered->applied, &position, m->next))
                if (ring_get_acquire(&offered->state) != own)
                    break;
            return (int)row;
        }
    }
    return RING_NO_ROW;
}

/* Say how the own row is woken. A former holder that goes on late does not write over it. */
static inline void ring_set_holder(struct ring_member *m, uint64_t flags, uint32_t pid)
{
    _Atomic uint64_t *holder = &m->order->rows[m->row].holder;
    uint64_t found = ring_get_acquire(holder);
    m->said.holder = ring_holder_word(m->incarnation, flags, pid);
    while (!ring_is_later(ring_holder_incarnation(found), m->incarnation))
        if (ring_swap_if(holder, &found, m->said.holder))
            return;
}

/* Be woken by the own eventfd from now on. Returns 0 if that is too early: a member that has not applied
 * the view in which this one joined may have the eventfd of the row's last holder, or none. */
static inline int ring_use_eventfd(struct ring_member *m, uint32_t pid)
{
    if (ring_renew_least(m) < m->began)
        return 0;
    ring_set_holder(m, RING_HAS_EVENTFD, pid);
    ring_or(&m->order->loops, ring_own_bit(m));
    return 1;
}

/* Take the row that was offered. Returns 0, or RING_LOST if it was struck meanwhile. `next`, `members`,
 * `incarnations` and `tickets` are those of the state that this member got. */
static inline int ring_take_row(struct ring_member *m, unsigned row, uint32_t incarnation, uint32_t pid)
{
    struct ring_row *own = &m->order->rows[row];
    uint64_t position = ring_get_acquire(&own->applied);
    uint32_t word;
    m->row = row;
    m->incarnation = incarnation;
    do {
        word = ring_get_acquire(&own->state);
        if (ring_state_of(word) != RING_JOINING || ring_incarnation_of(word) != incarnation)
            return RING_LOST;
    } while (!ring_swap_if(&own->applied, &position, m->next));
    m->published = m->next;
    ring_set_holder(m, 0, pid);
    ring_alarm_room(m); /* as `ring_advance`: others may have waited for this position */
    m->said.state = ring_state_word(incarnation, ring_sponsor_of(word), RING_IN);
    return ring_swap_if(&own->state, &word, m->said.state) ? 0 : RING_LOST;
}

/* The first member: nothing is in the order yet. */
static inline int ring_found(struct ring_member *m, unsigned row, uint32_t incarnation, uint32_t pid)
{
    uint32_t free = 0;
    uint32_t joining = ring_state_word(incarnation, ring_sponsor(row, incarnation), RING_JOINING);
    if (!ring_swap_if(&m->order->rows[row].state, &free, joining))
        return RING_LOST;
    m->members = 1ull << row;
    m->incarnations[row] = incarnation;
    return ring_take_row(m, row, incarnation, pid);
}

#endif
