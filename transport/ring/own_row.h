/* Damage of the own row: each of its words is written by its holder alone, but for what others may do to it.
 *
 * Others strike `state`, disarm `holder`, and former holders that go on late put rows into `left_out`. `interest` is not
 * looked at: a former holder may write it, and what it says is renewed before each sleep. `state` is swapped before the
 * row's next holder writes another word, so a word that differs is damaged only if `state` does not.
 */
#ifndef ORCALIKE_RING_OWN_ROW_H
#define ORCALIKE_RING_OWN_ROW_H

#include "fence.h"

/* Whether the own row can have this state: as this member took it, the same struck, or a later holder's. */
static inline int ring_may_be_state(const struct ring_member *m, uint32_t word)
{
    return word == m->said.state || word == (m->said.state | RING_STRUCK)
           || ring_is_later(ring_incarnation_of(word), m->incarnation);
}

/* The word of the own row that is not what this member has written, and cannot be another's; or NULL. */
static inline const char *ring_damaged_word(const struct ring_member *m)
{
    const struct ring_row *own = &m->order->rows[m->row];
    const struct ring_said *said = &m->said;
    const char *found = NULL;
    uint32_t state;
    if (ring_get_acquire(&own->applied) != m->published)
        found = "applied";
    else if ((ring_get_acquire(&own->holder) & ~RING_IS_ARMED) != said->holder)
        found = "holder";
    else if (said->begun && ring_get_acquire(&own->begun) != said->begun)
        found = "begun";
    else if (said->alone && ring_get_acquire(&own->alone) != said->alone)
        found = "alone";
    else if (said->left_out & ~ring_get_acquire(&own->left_out))
        found = "left_out";
    state = ring_get_ordered(&own->state);
    if (state == said->state)
        return found;
    return ring_may_be_state(m, state) ? NULL : "state";
}

#endif
