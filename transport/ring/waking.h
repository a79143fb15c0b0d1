/* Sleep and wake: futexes in the order segment, and eventfds for members with an event loop.
 *
 * A sleeper sets its bit, looks once more, and sleeps; a writer swaps its slot, and then looks for bits:
 * one of the two sees the other. A sleeper that wants some news only has said so before it sets its bit. No member clears its own bit when it wakes: the row may have another
 * holder by then, whose bit it would be. A bit too many costs one useless wake.
 *
 * The system's calls are `ring_futex_wait`, `ring_futex_wake` and `ring_notify`, of system.h or of the
 * simulator.
 */
#ifndef ORCALIKE_RING_WAKING_H
#define ORCALIKE_RING_WAKING_H

#include "member.h"

#ifndef RING_SIMULATED
#include "system.h"
#endif

enum ring_policy {
    RING_AT_ONCE = 0, /* woken by each news */
    RING_LINGER = 1,  /* after news, it sleeps for a while before it wants to be woken again */
    RING_LAZY = 2,    /* woken when half a ring waits */
};

/* Wake these rows by their futexes. */
static inline void ring_alarm(struct ring_member *m, uint64_t rows)
{
    for (unsigned half = 0; half < 2; half++) {
        uint32_t bits = (uint32_t)(rows >> RING_HALF * half & ((1ull << RING_HALF) - 1));
        if (bits) {
            ring_add(&m->order->alarms[half], 1);
            ring_futex_wake(&m->order->alarms[half], bits);
        }
    }
}

/* The rows among these whose holders are to be woken by news: those that are `due`, and those with an interest in what the news
 * is `about`. What wakes one is not known if a former holder of its row, which went on late, has written last. News about anything
 * is for all. */
static inline uint64_t ring_concerned(struct ring_member *m, uint64_t rows, uint64_t about, uint64_t due)
{
    uint64_t found = rows & due;
    if (about == RING_ANYTHING)
        return rows;
    for (uint64_t left = about ? rows & ~due : 0; left; left &= left - 1) {
        unsigned row = (unsigned)__builtin_ctzll(left);
        uint64_t interest = ring_get_ordered(&m->order->rows[row].interest);
        if (interest & ring_objects_of(about) || ring_interest_incarnation(interest) != m->incarnations[row])
            found |= 1ull << row;
    }
    return found;
}

/* Wake the rows that sleep on eventfds: those that are armed, or all. The first one to disarm it writes to
 * it. The incarnation is compared in the swap: a member that was expelled and goes on late may have the
 * eventfd of the row's last holder, and must not disarm another's. */
static inline void ring_alarm_loops(struct ring_member *m, uint64_t rows, int is_all)
{
    for (uint64_t left = rows; left; left &= left - 1) {
        unsigned row = (unsigned)__builtin_ctzll(left);
        _Atomic uint64_t *holder = &m->order->rows[row].holder;
        uint64_t found = ring_get_ordered(holder);
        if (m->eventfds[row] < 0 || ring_holder_incarnation(found) != m->incarnations[row])
            continue;
        if (is_all
            || (found & RING_IS_ARMED && ring_swap_if(holder, &found, found & ~RING_IS_ARMED)))
            m->wakes++, ring_notify(m->eventfds[row]);
    }
}

/* Wake the members that sleep and want it, after the own slot is swapped. */
static inline void ring_wake(struct ring_member *m, uint64_t about, uint64_t due)
{
    uint64_t others = RING_ALL_ROWS & ~ring_own_bit(m);
    /* The own bit stays: another thread of this member may sleep. */
    uint64_t rows = ring_get_ordered(&m->order->sleepers) & others;
    if (rows && (rows = ring_concerned(m, rows, about, due))) {
        m->wakes++;
        ring_alarm(m, ring_and(&m->order->sleepers, ~rows) & rows);
    }
    rows = ring_get_ordered(&m->order->loops) & others;
    if (rows)
        ring_alarm_loops(m, ring_concerned(m, rows, about, due), 0);
}

/* Wake the members that sleep, before this one leaves. It takes no bit and disarms nothing: if it ended in between, no view
 * would follow, in which the others listen anew. One wake too many does no harm. */
static inline void ring_wake_last(struct ring_member *m)
{
    uint64_t others = RING_ALL_ROWS & ~ring_own_bit(m);
    m->wakes++;
    ring_alarm(m, ring_get_ordered(&m->order->sleepers) & others);
    ring_alarm_loops(m, ring_get_ordered(&m->order->loops) & others, 1);
}

/* Wake all, also those that did not want it. */
static inline void ring_wake_all(struct ring_member *m)
{
    uint64_t others = RING_ALL_ROWS & ~ring_own_bit(m);
    ring_and(&m->order->sleepers, ~others);
    m->wakes++;
    ring_alarm(m, others);
    ring_alarm_loops(m, ring_get_ordered(&m->order->loops) & others, 1);
}

/* Wake the members that wait for room, if there are any. */
static inline void ring_alarm_room(struct ring_member *m)
{
    struct ring_order *order = m->order;
    if (ring_get_ordered(&order->room_waiters)) {
        ring_swap(&order->room_waiters, 0);
        ring_add(&order->room_alarm, 1);
        ring_futex_wake(&order->room_alarm, ~0u);
    }
}

/* Another member is dead, or takes part no more: it may have taken the sleepers' bits and not woken
 * them. Whatever they sleep on, they look again. */
static inline void ring_alarm_all(struct ring_member *m)
{
    ring_wake_all(m);
    ring_swap(&m->order->room_waiters, 0);
    ring_add(&m->order->room_alarm, 1);
    ring_futex_wake(&m->order->room_alarm, ~0u);
}

/* Publish that all below a slot is applied here. By a swap: a former holder of the row that goes on late does
 * not store a lower position over the next one's. Returns whether another position was there than this member's last. */
static inline int ring_publish(struct ring_member *m, uint64_t slot)
{
    uint64_t published = m->published;
    int is_other = 0;
    while (!ring_swap_if(&m->order->rows[m->row].applied, &published, slot)) {
        if (!ring_is_in(m))
            return 0;
        is_other = 1;
    }
    m->published = slot;
    ring_alarm_room(m);
    return is_other;
}

/* Publish how far this member is; returns as `ring_publish`. If it is no news, none is woken: else members that wait for
 * the room of another would wake each other for as long as they wait. */
static inline int ring_advance(struct ring_member *m)
{
    return m->published != m->next && ring_publish(m, m->next);
}

/* Ask to be woken by the next news of interest; whether there is any news already. */
static inline int ring_arm(struct ring_member *m, uint64_t interest)
{
    ring_put_relaxed(&m->order->rows[m->row].interest, ring_interest_word(m->incarnation, interest));
    ring_or(&m->order->sleepers, ring_own_bit(m));
    ring_fence(); /* on arm64 the look could pass the store */
    return ring_has_news(m);
}

/* Arm the own eventfd, for an event loop that is about to sleep on it until there is news of interest; whether there is any
 * news already. */
static inline int ring_arm_eventfd(struct ring_member *m, uint64_t interest)
{
    _Atomic uint64_t *holder = &m->order->rows[m->row].holder;
    uint64_t found = ring_get_acquire(holder);
    ring_put_relaxed(&m->order->rows[m->row].interest, ring_interest_word(m->incarnation, interest));
    while (ring_holder_incarnation(found) == m->incarnation)
        if (ring_swap_if(holder, &found, found | RING_IS_ARMED))
            break;
    ring_fence();
    return ring_has_news(m);
}

/* What the alarm of the own row is now: to be read before the look that comes before sleep. */
static inline uint32_t ring_alarm_now(struct ring_member *m)
{
    return ring_get_ordered(&m->order->alarms[m->row / RING_HALF]);
}

/* Sleep until a row is woken, for `ns` at most (negative: for good), or not at all if it was since `before`. Another thread
 * may use the member meanwhile. */
static inline void ring_rest(struct ring_order *order, unsigned row, uint32_t before, int64_t ns)
{
    ring_futex_wait(&order->alarms[row / RING_HALF], before, ns, 1u << row % RING_HALF);
}

/* Sleep until there is news, for `ns` at most; lazily: until half a ring waits. */
static inline void ring_doze(struct ring_member *m, int64_t ns, int is_lazy)
{
    uint32_t before = ring_alarm_now(m);
    if (is_lazy ? !ring_is_half_behind(m) : !ring_arm(m, RING_ANYTHING))
        ring_rest(m->order, m->row, before, ns);
}

/* Sleep by a policy, for `ns` at most. Lingering, a member wakes once in `linger_ns` while there is news,
 * and a lone write after silence is seen at once. */
static inline void ring_sleep(struct ring_member *m, int policy, int64_t ns, int64_t linger_ns)
{
    int had_news = m->had_news;
    m->had_news = 0;
    if (policy == RING_LINGER && had_news)
        ring_doze(m, ns < 0 || linger_ns < ns ? linger_ns : ns, 1);
    else
        ring_doze(m, ns, policy == RING_LAZY);
}

/* After RING_FULL, with all applied that there is: wake the others, and sleep until one has applied. */
static inline void ring_wait_for_room(struct ring_member *m, int64_t ns)
{
    struct ring_order *order = m->order;
    uint32_t before = ring_get_ordered(&order->room_alarm);
    uint64_t least = m->least;
    m->waits++;
    ring_or(&order->room_waiters, ring_own_bit(m));
    ring_fence();
    ring_wake_all(m);
    if (ring_renew_least(m) == least)
        ring_futex_wait(&order->room_alarm, before, ns, ~0u);
}

#endif
