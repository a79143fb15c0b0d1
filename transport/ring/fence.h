/* Views that the members agree on by other ways: in the order there is only the fence that ends one.
 *
 * The first fence with a view's number ends it for all: each member applies all below, and nothing above
 * until it has the next view. A member that swaps a slot has scanned all below, so a late or expelled one
 * meets the fence and does not append. It is there once: a member that would put it again has scanned it.
 *
 * At the fence all members know the same, so the next view's rows follow from it without a word in the
 * order. Each member sets them for all, before it goes on (`ring_admit`, `ring_drop`): twice does no harm.
 *
 * A member says in its row that it has begun the view, and that it can read all lanes in it. It appends when all can: the
 * last one to say so sees that, and wakes the others, which look again.
 *
 * A member that decides on the next view without the acceptance of all that may live says so in its row before. So one that
 * sees its end knows whether it has, without a lease (membership/lease.py).
 *
 * An expelled member that goes on late lowers no position: its own is swapped for the one that it has published last, and
 * that of a row that it admits is only raised (`ring_publish`, `ring_admit`).
 */
#ifndef ORCALIKE_RING_FENCE_H
#define ORCALIKE_RING_FENCE_H

#include "views.h"

/* Go on behind the fence at `next`, in the view with this number. The slot that the fence took is given back at
 * once, by members too that hold the others up: else the order would be full of fences after some views. Returns as
 * `ring_publish`. */
static inline int ring_pass_fence(struct ring_member *m, uint32_t view)
{
    m->next++;
    if (m->scanned < m->next)
        m->scanned = m->next;
    m->view = ring_fence_number(view);
    return ring_publish(m, m->published + 1);
}

/* A row is a member's in the view that begins at `next`. It counts from here on, though its holder may not
 * have taken it yet: so its position is there first, and is only ever raised, as a member that goes on late may
 * come here. Else the others would wait for a lower one, of a former holder's, for as long as the row is not taken. */
static inline void ring_admit(struct ring_member *m, unsigned row, uint32_t incarnation)
{
    struct ring_row *admitted = &m->order->rows[row];
    uint32_t word = ring_get_acquire(&admitted->state);
    uint32_t joining = ring_state_word(incarnation, ring_sponsor(m->row, m->incarnation), RING_JOINING);
    if (!(m->members >> row & 1) || m->incarnations[row] != incarnation)
        m->tickets[row] = 0;
    m->members |= 1ull << row;
    m->incarnations[row] = incarnation;
    while (ring_is_later(incarnation, ring_incarnation_of(word))) {
        uint64_t position = ring_get_acquire(&admitted->applied);
        while (position < m->next && !ring_swap_if(&admitted->applied, &position, m->next))
            ;
        if (ring_swap_if(&admitted->state, &word, joining))
            return;
    }
}

/* A row is no member's any more. One that did not leave by itself may live, and not know: it is woken. */
static inline void ring_drop(struct ring_member *m, unsigned row)
{
    if (ring_strike(m, row, m->incarnations[row])) {
        ring_alarm(m, 1ull << row);
        if (m->eventfds[row] >= 0)
            ring_notify(m->eventfds[row]);
    }
    m->members &= ~(1ull << row);
    m->left_at[row] = m->next;
    m->lanes[row] = NULL;
    m->eventfds[row] = -1;
}

/* Say something in the own row. A former holder that goes on late does not write over the word of the next one: 0. */
static inline int ring_say(struct ring_member *m, _Atomic uint64_t *word, uint64_t *said, uint32_t view)
{
    uint64_t found = ring_get_acquire(word);
    *said = ring_begun_word(m->incarnation, view);
    while (!ring_is_later(ring_begun_incarnation(found), m->incarnation))
        if (ring_swap_if(word, &found, *said))
            return 1;
    return 0;
}

/* This member has begun its view; `reads_all` is 0 or RING_READS_ALL. */
static inline int ring_say_begun(struct ring_member *m, uint32_t reads_all)
{
    return ring_say(m, &m->order->rows[m->row].begun, &m->said.begun, m->view | reads_all);
}

/* This member takes its row in its view. What it decided in views before that, without a row, is known to none. */
static inline int ring_say_since(struct ring_member *m)
{
    return ring_say(m, &m->order->rows[m->row].alone, &m->said.alone, m->view | RING_SINCE);
}

/* This member ends its view without the acceptance of the holders of these rows, which may live. They are never taken out
 * again, not by the row's next holder either: a former holder that goes on late may at most put some in. */
static inline int ring_say_alone(struct ring_member *m, uint64_t left_out)
{
    m->said.left_out |= left_out;
    ring_or(&m->order->rows[m->row].left_out, left_out);
    return ring_say(m, &m->order->rows[m->row].alone, &m->said.alone, m->view);
}

/* Whether the holder of a row, whose process has ended, has not ended this view without the acceptance of this member. */
static inline int ring_vouches_for(const struct ring_member *m, unsigned row)
{
    const struct ring_row *it = &m->order->rows[row];
    uint64_t alone = ring_get_ordered(&it->alone);
    uint32_t ahead = ((uint32_t)alone - m->view) & RING_FENCE_MASK;
    if (ring_begun_incarnation(alone) != m->incarnations[row])
        return 0;
    if (ahead == 0 && alone & RING_SINCE)
        return 1;
    return ahead > RING_FENCE_MASK / 2 || (ahead == 0 && !(ring_get_ordered(&it->left_out) & ring_own_bit(m)));
}

/* The rows whose holders have not said that they have begun the view, or, with RING_READS_ALL, that they can read all lanes
 * in it. */
static inline uint64_t ring_not_begun(const struct ring_member *m, uint32_t reads_all)
{
    uint64_t missing = 0;
    for (uint64_t left = m->members; left; left &= left - 1) {
        unsigned row = (unsigned)__builtin_ctzll(left);
        uint64_t begun = ring_get_ordered(&m->order->rows[row].begun) & ~(uint64_t)(RING_READS_ALL ^ reads_all);
        if (begun != ring_begun_word(m->incarnations[row], m->view | reads_all))
            missing |= 1ull << row;
    }
    return missing;
}

/* Be woken by what the others have in `eventfds` for this row, from the own view on: they look at the
 * incarnation first. */
static inline void ring_use_alarm(struct ring_member *m, uint32_t pid)
{
    ring_set_holder(m, RING_HAS_EVENTFD, pid);
    ring_or(&m->order->loops, ring_own_bit(m));
}

#endif
