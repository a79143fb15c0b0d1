/* Members of an order as coroutines, under a scheduler that draws from a seed: at each atomic step of the
 * product's own code it may switch, kill, or stop. Sequentially consistent interleavings only. */
#ifndef SIMULATOR_H
#define SIMULATOR_H
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define RING_SIMULATED 1
#define RING_ROWS 6u
#define RING_HALF 3u
static void sim_step(void);
#define RING_STEP() sim_step()

static long ring_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns, uint32_t bits);
static long ring_futex_wake(_Atomic uint32_t *word, uint32_t bits);
static void ring_notify(int fd);
#include "order.h"

enum { SLOTS_LOG = 3, LANE = 512, LIVES = 14, FIRST = 3, WRITES = 10, SLOTS_MAX = 2048 };
enum { EVENTFD = 3, CHOOSY = 4 }; /* policies that are none of the product's */
enum { STACK = 1 << 16, STEPS_MAX = 400000 };

/* One member from its joining to its end. */
struct life {
    jmp_buf context;
    ucontext_t first;
    char *stack;
    int is_started, is_alive, is_done, is_stopped;
    int is_wanted_out; /* it is dead, or taken for dead, and in the view still */
    int is_out_of_view; /* its expulsion, or its leaving, is in the order */
    int is_reported; /* its death, to one member */
    int knows; /* that another is wanted out */
    int has_notice; /* of a death, which ends its sleep */
    struct life *sponsor;
    const _Atomic uint32_t *sleeps_on;
    uint32_t bits;
    long resumes_at, wakes_at;
    unsigned row;
    uint32_t incarnation;
    int policy, has_eventfd;
    uint64_t interest; /* what is to wake it, where it sleeps choosily */
    struct ring_member m;
    _Alignas(8) unsigned char lane[LANE];
    uint64_t log[SLOTS_MAX]; /* what it has applied, by slot */
    uint64_t wrote, acknowledged, ordered;
    unsigned saved_eventfds; /* writes to its eventfd that it has not read */
};

struct fault {
    long at;
    int kind;
};
enum { KILL = 0, STOP_AND_EXPEL = 1, STOP = 2, FAULTS = 4 };

static struct {
    uint64_t seed, rng;
    long steps, quota;
    struct ring_order *order;
    struct life *lives, *now;
    int count;
    jmp_buf scheduler;
    struct fault faults[FAULTS];
    int faults_left, joins_left, leaves_left, is_calm;
    uint64_t truth[SLOTS_MAX], tail; /* what has been ordered, seen at the moment of the swap */
    const char *violation;
    long total_steps, kills, stops, expelled, joins, reused, fulls, reads, writes;
} S;

static uint64_t draw(uint64_t below)
{
    S.rng ^= S.rng << 13;
    S.rng ^= S.rng >> 7;
    S.rng ^= S.rng << 17;
    return S.rng % below;
}

static void violated(const char *what)
{
    if (!S.violation)
        S.violation = what;
}
#define CHECK(holds, what)                                                                         \
    do {                                                                                           \
        if (!(holds))                                                                              \
            violated(what);                                                                        \
    } while (0)

static int is_runnable(const struct life *life)
{
    return life->is_started && life->is_alive && !life->is_done && !life->is_stopped
           && (!life->sleeps_on || (life->wakes_at && S.steps >= life->wakes_at));
}

/* Back to the scheduler; returns when this life is chosen again. */
static void yield_now(void)
{
    if (!_setjmp(S.now->context))
        _longjmp(S.scheduler, 1);
}

static struct life *life_of(unsigned row, uint32_t incarnation)
{
    for (int i = 0; i < S.count; i++)
        if (S.lives[i].row == row && S.lives[i].incarnation == incarnation)
            return &S.lives[i];
    return NULL;
}

/* Something is in the order since the last step: one slot at most. */
static void see_order(void)
{
    uint64_t slot = S.tail, word, text;
    struct life *life;
    word = atomic_load_explicit(&S.order->slots[slot & ((1u << SLOTS_LOG) - 1)], memory_order_relaxed);
    if (ring_lap_of(word) != ((slot >> SLOTS_LOG) + 1) || S.tail == SLOTS_MAX)
        return;
    S.tail++;
    if (word & RING_IS_VIEW) {
        S.truth[slot] = word & 0x1ffffffff;
        life = life_of(ring_view_row_of(word), ring_view_incarnation_of(word));
        if (life && ring_view_kind_of(word) != RING_JOIN)
            life->is_out_of_view = 1, life->is_wanted_out = 0;
        return;
    }
    for (int i = 0; i < S.count; i++)
        if (&S.lives[i] == S.now) {
            memcpy(&text, S.now->lane + ring_offset_of(word) + RING_HEAD, sizeof text);
            CHECK(!S.now->is_out_of_view, "late append: a packet of an expelled member");
            CHECK(text == ((uint64_t)i << 40 | ++S.now->ordered), "a member's packets in its order");
            S.truth[slot] = text;
        }
}

/* One live member learns of each death, by its pidfd, also of one that has just left; what the others do about it depends on it. If that
 * one ends before it has done its part, another learns. */
static void notify_one(void)
{
    int able[LIVES], count = 0, is_new = 0, is_known = 0, is_wanted = 0;
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        is_new |= (life->is_wanted_out || !life->is_alive) && !life->is_reported;
        is_wanted |= life->is_wanted_out;
        if (life->has_notice && (!life->is_alive || life->is_done || life->is_wanted_out)) {
            life->has_notice = 0;
            is_new = 1;
        }
        if (life->is_started && life->is_alive && !life->is_done && !life->is_stopped
            && !life->is_wanted_out) {
            is_known |= life->knows;
            able[count++] = i;
        }
    }
    if (count && (is_new || (is_wanted && !is_known))) {
        struct life *life = &S.lives[able[draw((uint64_t)count)]];
        life->knows = life->has_notice = 1;
        life->sleeps_on = NULL;
        for (int i = 0; i < S.count; i++)
            S.lives[i].is_reported |= S.lives[i].is_wanted_out || !S.lives[i].is_alive;
    }
}

static void strike_fault(void)
{
    struct fault *fault = &S.faults[--S.faults_left];
    struct life *victim = S.now;
    if (draw(4) == 0)
        victim = &S.lives[draw(S.count)];
    if (!victim->is_started || !victim->is_alive || victim->is_done || victim->is_stopped)
        return;
    if (fault->kind == KILL) {
        victim->is_alive = victim->is_reported = 0;
        S.kills++;
    } else {
        victim->is_stopped = 1;
        victim->resumes_at = S.steps + 50 + (long)draw(3000);
        S.stops++;
    }
    if (fault->kind != STOP && !victim->is_out_of_view)
        victim->is_wanted_out = 1;
}

static void sim_step(void)
{
    if (!S.now)
        return;
    see_order();
    S.steps++;
    if (S.faults_left && S.steps >= S.faults[S.faults_left - 1].at)
        strike_fault();
    if (S.now->is_stopped || !S.now->is_alive || --S.quota <= 0 || S.violation)
        yield_now();
}

static long ring_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns, uint32_t bits)
{
    sim_step();
    if (atomic_load(word) != value || S.now->has_notice)
        return -1;
    S.now->sleeps_on = word;
    S.now->bits = bits;
    S.now->wakes_at = ns < 0 ? 0 : S.steps + 20 + (long)draw(400);
    yield_now();
    S.now->sleeps_on = NULL;
    return 0;
}

static long ring_futex_wake(_Atomic uint32_t *word, uint32_t bits)
{
    sim_step();
    for (int i = 0; i < S.count; i++)
        if (S.lives[i].sleeps_on == word && S.lives[i].bits & bits)
            S.lives[i].sleeps_on = NULL;
    return 0;
}

static void ring_notify(int fd)
{
    sim_step();
    S.lives[fd].saved_eventfds++;
    if (S.lives[fd].sleeps_on == (const _Atomic uint32_t *)&S.lives[fd].saved_eventfds)
        S.lives[fd].sleeps_on = NULL;
}

/* Sleep on the own eventfd, as an event loop does. */
static void sleep_on_eventfd(void)
{
    sim_step();
    if (!S.now->saved_eventfds && !S.now->has_notice) {
        S.now->sleeps_on = (const _Atomic uint32_t *)&S.now->saved_eventfds;
        S.now->wakes_at = 0;
        yield_now();
        S.now->sleeps_on = NULL;
    }
    S.now->saved_eventfds = 0;
}

static void start(struct life *life, void (*body)(void))
{
    getcontext(&life->first);
    life->first.uc_stack.ss_sp = life->stack;
    life->first.uc_stack.ss_size = STACK;
    life->first.uc_link = NULL;
    makecontext(&life->first, body, 0);
    life->is_started = 2; /* not entered yet */
}

/* Run a life until it yields. */
static void run(struct life *life)
{
    S.now = life;
    S.quota = draw(3) ? 1 + (long)draw(3) : 1 + (long)draw(60);
    if (!_setjmp(S.scheduler)) {
        if (life->is_started == 2) {
            life->is_started = 1;
            setcontext(&life->first);
        }
        _longjmp(life->context, 1);
    }
    see_order();
    S.now = NULL;
}

static struct life *chosen(void)
{
    int able[LIVES], count = 0, is_pausing = 0, is_wanted = 0;
    long earliest = 0;
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        if (life->is_stopped && S.steps >= life->resumes_at)
            life->is_stopped = 0;
        is_wanted |= life->is_wanted_out || (!life->is_alive && !life->is_reported)
                     || (life->has_notice && life->is_done);
        if (is_runnable(life))
            able[count++] = i;
        else if (life->is_alive && (life->is_stopped || (life->sleeps_on && life->wakes_at))) {
            long at = life->is_stopped ? life->resumes_at : life->wakes_at;
            earliest = is_pausing && earliest < at ? earliest : at;
            is_pausing = 1;
        }
    }
    for (int i = 0; i < S.count; i++) /* a joiner that its sponsor leaves alone gives up */
        if (!S.lives[i].is_started && !S.lives[i].is_out_of_view
            && (S.lives[i].sponsor->is_done || !S.lives[i].sponsor->is_alive))
            S.lives[i].is_wanted_out = is_wanted = 1;
    if (is_wanted && S.steps % 7 == 0)
        notify_one();
    if (count) /* calm: those that are woken come first */
        return &S.lives[able[S.is_calm ? count - 1 : (int)draw(count)]];
    if (is_wanted)
        notify_one();
    for (int i = 0; i < S.count; i++)
        if (is_runnable(&S.lives[i]))
            return &S.lives[i];
    if (!is_pausing)
        return NULL;
    S.steps = earliest > S.steps ? earliest : S.steps + 1;
    return chosen();
}

#endif
