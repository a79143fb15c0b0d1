/* simulator SEEDS FIRST: runs of random members, faults and schedules over the product's order. Prints a
 * line of JSON; exit code 1 and the first violation, with its seed, if there is one.
 *
 * What must hold: one order, without gaps; what is acknowledged is never lost; nothing of a member is in
 * the order behind the fence that ends its view, nor before all have begun theirs; no packet is torn; a
 * read sees all that was ordered before it began; no member sleeps for good while there is news that it
 * wants, or all have begun its view; none is out that was not expelled. */
#include "beginning.h"

/* As `close` of mapped_order.pyx, where it is attached. */
static void finish(void)
{
    struct life *self = S.now;
    if (self->is_attached) {
        ring_strike(&self->m, self->row, self->incarnation);
        ring_wake_last(&self->m);
    }
    see_order();
    if (!self->is_wanted_out && !self->is_out_of_view)
        violated("a member is out that was not expelled");
    S.expelled++;
    self->is_done = 1;
    for (;;)
        yield_now();
}

static struct life *make_life(void)
{
    struct life *life = &S.lives[S.count++];
    char *stack = life->stack;
    memset(life, 0, offsetof(struct life, log));
    life->wrote = life->acknowledged = life->ordered = life->saved_eventfds = 0;
    life->stack = stack;
    life->is_alive = 1;
    life->view = life->said = life->offers = life->reported = -1;
    life->interest = RING_ANYTHING;
    life->policy = (int)draw(POLICIES);
    return life;
}

/* Apply all that there is. Returns whether this member is still in. */
static int apply_all(void)
{
    struct ring_member *m = &S.now->m;
    struct ring_entry entry = {0};
    uint64_t words[3] = {0, 0, 0};
    int found;
    while ((found = ring_next(m, &entry)) > 0) {
        for (int i = 0; i < 3; i++) {
            sim_step();
            memcpy(&words[i], entry.bytes + 8 * i, 8);
        }
        if (!ring_is_in(m))
            return 0;
        CHECK(words[0] == words[1] && words[1] == words[2], "a torn packet");
        CHECK(entry.slot < S.tail && words[0] == S.truth[entry.slot], "one order, without gaps");
        S.now->log[entry.slot] = words[0];
        ring_applied(m, &entry);
    }
    S.now->at_fence = found == RING_FENCED;
    if (found < 0 && found != RING_FENCED) {
        CHECK(found == RING_OUT, "a fault in sound memory");
        return 0;
    }
    ring_advance(m);
    return 1;
}

/* Others must apply first: wake them, and try again in a while. */
static void full(struct life *self)
{
    if (!self->is_full)
        ring_wake_all(&self->m);
    self->is_full = 1;
}

/* All are asked to end the view: put the fence, go up to it, and report. Returns whether still in. */
static int end_view(struct life *self)
{
    int found = 0;
    if (self->is_attached && !self->at_fence) {
        found = ring_append_fence(&self->m);
        CHECK(found == 0 || found == RING_FULL || found == RING_OUT, "a fault in sound memory");
        if (found == RING_FULL)
            full(self);
        if (!apply_all())
            return 0;
    }
    if (self->at_fence || !self->is_attached) {
        self->reported = self->view;
        tell_all();
    }
    return 1;
}

/* What a packet is about, and the row that it is due to, if it is to one. */
static uint64_t about_of(uint64_t word)
{
    return word % 7 == 6 ? RING_ANYTHING : 1ull << word % 4;
}

static uint64_t due_of(uint64_t word)
{
    return word % 2 ? 0 : 1ull << word % RING_ROWS;
}

static int is_wanted(const struct life *life, uint64_t word)
{
    return about_of(word) == RING_ANYTHING || about_of(word) & life->interest || due_of(word) >> life->row & 1;
}

/* The own packet, which is the next one here, needs not to be looked for. */
static int note_own(uint64_t word)
{
    struct ring_member *m = &S.now->m;
    CHECK(word == S.truth[m->next - 1], "one order, without gaps");
    S.now->log[m->next - 1] = word;
    ring_advance(m);
    return !m->is_out;
}

/* After an append, in either order: to wake first makes the call longer, and is earlier for the others. */
static int apply_and_wake(uint64_t word)
{
    int is_late = draw(3) != 0, is_in;
    if (!is_late)
        ring_wake(&S.now->m, about_of(word), due_of(word));
    is_in = draw(2) && ring_applied_own(&S.now->m) ? note_own(word) : apply_all();
    if (is_late)
        ring_wake(&S.now->m, about_of(word), due_of(word));
    return is_in;
}

/* Returns whether still in. Where there is no room, or not all have begun, or the view ends, it is to be tried again. */
static int write_one(void)
{
    struct life *self = S.now;
    struct ring_member *m = &self->m;
    uint64_t number = self->wrote + 1, word = (uint64_t)(self - S.lives) << 40 | number;
    uint32_t size = 24 + 8 * (uint32_t)draw(S.is_calm ? 5 : 12); /* calm: the lane is not full before the ring */
    unsigned char *bytes = NULL;
    int64_t slot = ring_room(m, size, &bytes);
    int is_in;
    CHECK(slot == 0 || slot == RING_FULL, "room for a small packet");
    for (int i = 0; i < 3 && slot == 0; i++) {
        sim_step();
        memcpy(bytes + 8 * i, &word, 8);
    }
    if (slot == 0)
        slot = ring_append(m, size, 1);
    if (slot == RING_FULL)
        full(self);
    if (slot < 0) {
        CHECK(slot == RING_FULL || slot == RING_OUT || slot == RING_FENCED, "a fault in sound memory");
        return slot != RING_OUT && apply_all();
    }
    see_order();
    self->wrote = number;
    self->is_full = 0;
    CHECK(S.truth[slot] == word, "a write is at its slot");
    is_in = apply_and_wake(word);
    if (m->next > (uint64_t)slot) {
        CHECK(self->log[slot] == word, "a writer has applied its own write");
        self->acknowledged = number;
        S.writes++;
    }
    return is_in;
}

static int read_all(void)
{
    uint64_t tail;
    see_order();
    tail = S.tail;
    if (ring_has_news(&S.now->m) && (!apply_all() || S.now->at_fence))
        return !S.now->m.is_out; /* at the fence it waits */
    CHECK(S.now->m.next >= tail, "a read sees all that was ordered before it began");
    S.reads++;
    return 1;
}

/* Sleep, as listening.pyx does: by the futex, or by the eventfd, until there is news of some objects, or any. */
static void rest(struct life *self)
{
    struct ring_member *m = &self->m;
    int64_t ns = self->is_full ? 1 : -1;
    uint32_t before = ring_alarm_now(m);
    int is_choosy = self->policy >= CHOOSY && draw(2), by_eventfd = self->policy % CHOOSY == SWITCHING ? (int)draw(2)
                                                                    : self->policy % CHOOSY == EVENTFD;
    if (self->at_fence)
        ring_rest(m->order, self->row, before, ns);
    else if (S.is_calm && self->may_append && self != S.lives) {
        if (!ring_has_news(m))
            ring_rest(m->order, self->row, before, -1); /* until half a ring waits: it is not armed */
    } else if (by_eventfd) {
        int is_quiet = self->is_armed && self->interest == RING_ANYTHING;
        if (!is_quiet) {
            self->interest = is_choosy ? draw(8) : RING_ANYTHING;
            self->is_armed = 1;
            is_quiet = !ring_arm_eventfd(m, self->interest);
        }
        if (is_quiet)
            sleep_on_eventfd(ns);
    } else {
        self->interest = is_choosy ? draw(8) : RING_ANYTHING;
        if (!ring_arm(m, self->interest) && (self->may_append || !have_all_begun(self)))
            ring_rest(m->order, self->row, before, ns);
    }
    self->is_full = 0;
}

/* What one that has no part in the order yet, or no more, does: it waits for a message. */
static void wait_for_message(void)
{
    sim_step();
    if (!S.now->has_notice) {
        S.now->sleeps_on = &S.order->alarms[0];
        S.now->bits = 0;
        S.now->wakes_at = 0;
        yield_now();
        S.now->sleeps_on = NULL;
    }
}

static void ask_to_join(void)
{
    S.joins_left--;
    make_life();
}

static void ask_to_leave(struct life *self)
{
    S.leaves_left--;
    self->is_leaving = 1;
    self->is_wanted_out = !self->is_out_of_view;
    if (draw(2)) /* without a word: the others learn of it as of a death */
        finish();
}

/* Write, read, sleep: what is drawn. Returns whether still in. */
static int act(struct life *self)
{
    unsigned what = (unsigned)draw(16);
    int is_writer = !S.is_calm || self == S.lives, may_write = self->may_append && !self->at_fence && !self->is_full;
    if (is_writer && may_write && self->wrote < WRITES && (what < 9 || S.is_calm))
        return write_one();
    if (what < 11 && !S.is_calm)
        return read_all();
    if (what == 11 && S.joins_left > 0 && S.count < LIVES)
        ask_to_join();
    else if (what == 12 && S.leaves_left && !self->is_wanted_out && draw(8) == 0)
        ask_to_leave(self);
    else if (what == 13)
        check_vouching(self);
    else {
        if (!apply_all())
            return 0;
        if (!self->may_append)
            have_all_begun(self);
        self->place = RESTING;
        if (!self->has_notice)
            rest(self);
        self->place = ANYWHERE;
    }
    return 1;
}

static void member(void)
{
    struct life *self = S.now;
    int is_in = 1;
    if (self->view == 0 && self == S.lives)
        make(self);
    while (is_in) {
        int is_late = self->is_out_of_view && !is_in_view(self, self->view + 1);
        if (self->has_notice && is_late && draw(2))
            break; /* it is told */
        self->has_notice = 0;
        if (self->view < S.last && is_in_view(self, self->view + 1))
            begin_view(self);
        take_offers(self);
        if (self->view == S.last && S.asked && self->reported < self->view)
            is_in = end_view(self);
        if (is_in && self->is_attached)
            decide_if_all_are_there(self);
        if (is_in && self->is_attached)
            is_in = act(self);
        else if (is_in)
            wait_for_message();
        if (is_late && draw(4) == 0)
            self->has_notice = 1;
    }
    finish();
}

/* When none runs: has each survivor applied all, or may it sleep? */
static void check_survivor(const struct life *life)
{
    int is_choosy = life->interest != RING_ANYTHING, is_lazy = S.is_calm && life != S.lives;
    CHECK(life->view == S.last && life->is_attached, "asleep for good, and has not begun its view");
    CHECK(life->may_append, "asleep for good, though all have begun");
    CHECK(!S.asked && S.open == S.last, "asleep for good, and the next view is not decided");
    CHECK(S.tail - life->m.next < (is_lazy || is_choosy ? 5u : 1u), "asleep for good with news");
    for (uint64_t slot = life->m.next; !is_lazy && slot < S.tail; slot++)
        CHECK(!is_wanted(life, S.truth[slot]), "asleep for good with news that is wanted");
    CHECK(!S.is_calm || life->m.fulls == 0, "room is made before it is needed");
}

static void check_end(long kills)
{
    int is_over = 1; /* if none is left that could offer the order */
    for (unsigned row = 0; row < RING_ROWS; row++) {
        const struct life *life = life_of(&S.views[S.last], row);
        if (life && is_living(life) && !life->is_wanted_out && life->is_attached)
            is_over = 0;
    }
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        uint64_t ordered = 0;
        S.fulls += (long)life->m.fulls;
        for (uint64_t slot = 0; slot < S.tail; slot++)
            ordered += S.truth[slot] >> 40 == (uint64_t)i && !(S.truth[slot] & RING_IS_VIEW);
        CHECK(ordered >= life->acknowledged, "acknowledged and lost");
        if (!is_over && is_in_view(life, S.last) && is_living(life) && !life->is_wanted_out)
            check_survivor(life);
        if (!is_over && life->is_out_of_view && is_living(life) && life->is_attached && S.kills == kills)
            CHECK(life->at_fence || !life->may_append, "asleep for good, and does not know that it is out");
    }
}

static void draw_faults(void)
{
    int faults = S.is_calm ? 0 : (int)draw(FAULTS + 1);
    for (int i = 0; i < faults; i++) {
        S.faults[i].at = 50 + (long)draw(draw(2) ? 1000 : 4000);
        S.faults[i].kind = (int)draw(3);
        S.faults[i].place = (int)draw(4) % 3;
        S.faults[i].steps = S.faults[i].place ? 1 + (long)draw(S.faults[i].place == ENTERING ? 60 : 8) : 0;
    }
    for (int i = 1; i < faults; i++) /* the first one last */
        for (int j = i; j > 0 && S.faults[j].at > S.faults[j - 1].at; j--) {
            struct fault swapped = S.faults[j];
            S.faults[j] = S.faults[j - 1];
            S.faults[j - 1] = swapped;
        }
    S.faults_left = faults;
}

static void prepare(uint64_t seed)
{
    struct view *view = &S.views[0];
    int first;
    S.seed = seed;
    S.rng = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < 8; i++)
        draw(1);
    S.now = NULL;
    S.count = S.last = S.open = S.asked = S.late_kills = 0;
    S.steps = 0;
    S.tail = 0;
    memset(S.order, 0, ring_order_size(SLOTS_LOG));
    S.is_calm = draw(8) == 0;
    S.joins_left = S.is_calm ? 0 : (int)draw(8);
    S.leaves_left = S.is_calm ? 0 : (int)draw(3);
    draw_faults();
    memset(view, 0, sizeof *view);
    view->number = draw(4) ? 1 : RING_INCARNATION_MASK - (uint32_t)draw(4);
    first = 3 + (int)draw(2);
    for (int i = 0; i < first; i++) {
        struct life *life = make_life();
        life->row = (unsigned)i;
        life->incarnation = (view->number - 1) % RING_INCARNATION_MASK + 1;
        life->view = 0;
        view->rows |= 1ull << i;
        view->lives[i] = life;
        start(life, member);
    }
}

static void run_seed(uint64_t seed)
{
    struct life *life;
    long kills = S.kills;
    prepare(seed);
    while (!S.violation && (life = chosen())) {
        run(life);
        CHECK(S.steps < STEPS_MAX && S.tail < SLOTS_MAX - 1, "runs without end");
    }
    if (!S.violation)
        check_end(kills);
    S.total_steps += S.steps;
    S.views_begun += S.last;
}

static void show_lives(void)
{
    fprintf(stderr, "slots %lu, sleepers %lx, views %d, open %d, asked %d\n", (unsigned long)S.tail,
            (unsigned long)S.order->sleepers, S.last + 1, S.open, S.asked);
    for (int i = 0; i < S.count; i++) {
        const struct life *life = &S.lives[i];
        const struct ring_member *m = &life->m;
        fprintf(stderr,
                "%d: row %u.%u state %x applied %lu begun %lx, next %lu scanned %lu least %lu, wrote %lu, view %d "
                "in last %d said %d reported %d attached %d fence %d may append %d mapped %lx started %d alive %d done %d "
                "stopped %d wanted out %d out of view %d policy %d interest %lx sleeps %d\n",
                i, life->row, life->incarnation, S.order->rows[life->row].state,
                (unsigned long)S.order->rows[life->row].applied, (unsigned long)S.order->rows[life->row].begun,
                (unsigned long)m->next, (unsigned long)m->scanned, (unsigned long)m->least,
                (unsigned long)life->wrote, life->view, is_in_view(life, S.last), life->said, life->reported,
                life->is_attached, life->at_fence, life->may_append, (unsigned long)life->mapped, life->is_started,
                life->is_alive, life->is_done, life->is_stopped, life->is_wanted_out, life->is_out_of_view,
                life->policy, (unsigned long)life->interest, life->sleeps_on != NULL);
    }
}

int main(int argc, char **argv)
{
    long seeds = argc > 1 ? atol(argv[1]) : 1, first = argc > 2 ? atol(argv[2]) : 1, done = 0;
    S.lives = calloc(LIVES, sizeof *S.lives);
    S.order = aligned_alloc(4096, (ring_order_size(SLOTS_LOG) + 4095) & ~4095ull);
    for (int i = 0; i < LIVES; i++)
        S.lives[i].stack = malloc(STACK);
    while (done < seeds && !S.violation)
        run_seed((uint64_t)(first + done++));
    if (S.violation && argc > 3)
        show_lives();
    printf("{\"seeds\": %ld, \"steps\": %ld, \"kills\": %ld, \"stops\": %ld, \"out\": %ld, "
           "\"joins\": %ld, \"reused\": %ld, \"views\": %ld, \"writes\": %ld, \"reads\": %ld, \"fulls\": %ld, "
           "\"seed\": %ld, \"violation\": \"%s\"}\n",
           done, S.total_steps, S.kills, S.stops, S.expelled, S.joins, S.reused, S.views_begun, S.writes, S.reads,
           S.fulls, S.violation ? (long)S.seed : 0, S.violation ? S.violation : "");
    return S.violation != NULL;
}
