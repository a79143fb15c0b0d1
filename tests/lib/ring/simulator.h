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

enum { SLOTS_LOG = 3, LANE = 512, LIVES = 14, VIEWS = 64, WRITES = 10, SLOTS_MAX = 2048 };
/* How a member sleeps: by its futex, by its eventfd, or by either; CHOOSY more: until there is news of some objects. */
enum { EVENTFD = 1, SWITCHING = 2, CHOOSY = 3, POLICIES = 6 };
enum { STACK = 1 << 16, STEPS_MAX = 400000 };

/* One member from its joining to its end. */
struct life {
    jmp_buf context;
    ucontext_t first;
    char *stack;
    int is_started, is_alive, is_done, is_stopped;
    int is_wanted_out; /* it is dead, or taken for dead, or leaves, and in the last view still */
    int is_out_of_view; /* a view was decided without it */
    int has_notice; /* a message, which ends its sleep */
    const _Atomic uint32_t *sleeps_on;
    uint32_t bits;
    long resumes_at, wakes_at;
    unsigned row;
    uint32_t incarnation;
    int view; /* the last one that it has begun, or was told of */
    int said; /* that it has begun, and reads all lanes: of this view */
    int offers; /* its memory: in this view */
    int reported; /* of this view it has said that it is at the fence, or that it is not attached */
    int place, is_attached, at_fence, may_append, is_full, is_leaving;
    uint64_t mapped; /* rows */
    int policy, is_armed;
    uint64_t interest; /* what is to wake it */
    struct ring_member m;
    _Alignas(8) unsigned char lane[LANE];
    uint64_t log[SLOTS_MAX]; /* what it has applied, by slot */
    uint64_t wrote, acknowledged, ordered;
    unsigned saved_eventfds; /* writes to its eventfd that it has not read */
};

/* What the members have agreed on by messages. */
struct view {
    uint32_t number;
    uint64_t rows;
    struct life *lives[RING_ROWS], *decider;
    uint64_t start, tickets[RING_ROWS]; /* the slot behind the fence of the one before; as of there */
};

/* `steps`: from then on, after so many steps at a place: where a member begins a view, or goes to sleep. */
struct fault {
    long at, steps;
    int kind, place;
};
enum { ANYWHERE = 0, ENTERING = 1, RESTING = 2 };
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
    struct view views[VIEWS];
    int last; /* of the views that are decided */
    int asked; /* all are to end the last one, because of these lives */
    int late_kills; /* of members that no view follows, which may have taken bits and not woken */
    uint64_t truth[SLOTS_MAX], tail; /* what has been ordered, seen at the moment of the swap */
    int open; /* the view of what is ordered now: one more than `last` behind a fence */
    const char *violation;
    long total_steps, kills, stops, expelled, joins, reused, views_begun, fulls, reads, writes;
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

static struct life *life_of(const struct view *view, unsigned row)
{
    return row < RING_ROWS && view->rows >> row & 1 ? view->lives[row] : NULL;
}

static int is_in_view(const struct life *life, int view)
{
    return view >= 0 && view <= S.last && life_of(&S.views[view], life->row) == life;
}

static int is_living(const struct life *life)
{
    return life->is_started && life->is_alive && !life->is_done;
}

/* A member has put a packet into the order. */
static void see_packet(uint64_t slot, uint64_t word)
{
    struct life *life = S.now, *other;
    uint64_t text;
    memcpy(&text, life->lane + ring_offset_of(word) + RING_HEAD, sizeof text);
    CHECK(is_in_view(life, S.open) && life->view == S.open, "late append: a packet of another view");
    CHECK(text == ((uint64_t)(life - S.lives) << 40 | ++life->ordered), "a member's packets in its order");
    for (unsigned row = 0; row < RING_ROWS && S.open <= S.last; row++)
        if ((other = life_of(&S.views[S.open], row)))
            CHECK(other->said == S.open, "a packet before all have begun the view");
    S.truth[slot] = text;
}

/* Something is in the order since the last step: one slot at most. */
static void see_order(void)
{
    uint64_t slot = S.tail, word;
    word = atomic_load_explicit(&S.order->slots[slot & ((1u << SLOTS_LOG) - 1)], memory_order_relaxed);
    if (ring_lap_of(word) != ((slot >> SLOTS_LOG) + 1) || S.tail == SLOTS_MAX)
        return;
    S.tail++;
    if (!(word & RING_IS_VIEW)) {
        see_packet(slot, word);
        return;
    }
    S.truth[slot] = word & 0x1ffffffff;
    CHECK(S.open == S.last && S.asked, "a fence that was not asked for");
    CHECK(ring_fence_number_of(word) == ring_fence_number(S.views[S.last].number), "a fence of another view");
    S.open++;
}

static void strike_fault(void)
{
    struct fault *fault = &S.faults[--S.faults_left];
    struct life *victim = S.now;
    if (!fault->steps && draw(4) == 0)
        victim = &S.lives[draw(S.count)];
    if (!is_living(victim) || victim->is_stopped)
        return;
    if (fault->kind == KILL) {
        victim->is_alive = 0;
        S.kills++;
        S.late_kills += victim->is_out_of_view;
    } else {
        victim->is_stopped = 1;
        victim->resumes_at = S.steps + 50 + (long)draw(3000);
        S.stops++;
    }
    if (fault->kind != STOP && !victim->is_out_of_view)
        victim->is_wanted_out = 1;
}

static int is_fault_due(void)
{
    struct fault *fault = &S.faults[S.faults_left - 1];
    if (S.steps < fault->at)
        return 0;
    return !fault->steps || (S.now->place == fault->place && --fault->steps == 0 && (fault->steps = 1));
}

static void sim_step(void)
{
    if (!S.now)
        return;
    see_order();
    S.steps++;
    if (S.faults_left && is_fault_due())
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
static void sleep_on_eventfd(int64_t ns)
{
    sim_step();
    if (!S.now->saved_eventfds && !S.now->has_notice) {
        S.now->sleeps_on = (const _Atomic uint32_t *)&S.now->saved_eventfds;
        S.now->wakes_at = ns < 0 ? 0 : S.steps + 20 + (long)draw(400);
        yield_now();
        S.now->sleeps_on = NULL;
    }
    if (S.now->saved_eventfds)
        S.now->is_armed = 0;
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
    S.quota = S.is_calm || draw(3) ? 1 + (long)draw(3) : 1 + (long)draw(60);
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

static int ask_for_a_view(void);

/* Each member looks again after a while, as one that had taken its bit may have ended as a member of no view. */
static int all_look_again(void)
{
    if (!S.late_kills)
        return 0;
    S.late_kills = 0;
    for (int i = 0; i < S.count; i++) {
        S.lives[i].sleeps_on = NULL;
        S.lives[i].is_armed = 0;
    }
    return 1;
}

static struct life *chosen(void)
{
    int able[LIVES], count = 0, is_pausing = 0;
    long earliest = 0;
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        if (life->is_stopped && S.steps >= life->resumes_at)
            life->is_stopped = 0;
        if (is_runnable(life))
            able[count++] = i;
        else if (is_living(life) && (life->is_stopped || (life->sleeps_on && life->wakes_at))) {
            long at = life->is_stopped ? life->resumes_at : life->wakes_at;
            earliest = is_pausing && earliest < at ? earliest : at;
            is_pausing = 1;
        }
    }
    if (S.steps % 7 == 0 || !count)
        if (ask_for_a_view() && !count)
            return chosen();
    if (count) /* calm: those that are woken come first */
        return &S.lives[able[S.is_calm ? count - 1 : (int)draw(count)]];
    if (!is_pausing)
        return all_look_again() ? chosen() : NULL;
    S.steps = earliest > S.steps ? earliest : S.steps + 1;
    return chosen();
}

#endif
