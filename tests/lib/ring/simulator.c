/* simulator SEEDS FIRST: runs of random members, faults and schedules over the product's order. Prints a
 * line of JSON; exit code 1 and the first violation, with its seed, if there is one.
 *
 * What must hold: one order, without gaps; what is acknowledged is never lost; nothing of a member is in
 * the order after its expulsion; no packet is torn; a read sees all that was ordered before it began; no
 * member sleeps for good while there is news that it wants, or room; none is out that was not expelled. */
#include "simulator.h"

static void member(void);

static void finish(void)
{
    S.now->is_done = 1;
    for (;;)
        yield_now();
}

static void map_row(struct ring_member *m, unsigned row)
{
    struct life *life = life_of(row, m->incarnations[row]);
    if (life)
        ring_map_lane(m, row, life->incarnation, life->lane);
    m->eventfds[row] = life ? (int)(life - S.lives) : -1;
}

static void joiner(void)
{
    struct ring_member *m = &S.now->m;
    if (ring_take_row(m, S.now->row, S.now->incarnation, 1)) {
        if (!S.now->is_out_of_view)
            S.now->is_wanted_out = 1;
        finish();
    }
    member();
}

/* The state as of the view, from the member that offered the row. */
static void begin_life(struct life *life, const struct ring_member *donor, const uint64_t *log)
{
    struct ring_member *m = &life->m;
    ring_begin(m, S.order, SLOTS_LOG, LANE, donor ? donor->next : 0);
    m->row = life->row;
    m->own_lane = life->lane;
    m->incarnation = life->incarnation;
    if (donor) {
        m->members = donor->members;
        memcpy(m->incarnations, donor->incarnations, sizeof m->incarnations);
        memcpy(m->tickets, donor->tickets, sizeof m->tickets);
        memcpy(life->log, log, donor->next * sizeof *log);
        for (unsigned row = 0; row < RING_ROWS; row++)
            if (m->members >> row & 1)
                map_row(m, row);
    }
    life->policy = S.is_calm ? RING_LAZY : (int)draw(5);
    life->interest = RING_ANYTHING;
}

static struct life *make_life(unsigned row, uint32_t incarnation)
{
    struct life *life = &S.lives[S.count++];
    char *stack = life->stack;
    memset(life, 0, offsetof(struct life, log));
    life->wrote = life->acknowledged = life->ordered = life->saved_eventfds = 0;
    life->stack = stack;
    life->row = row;
    life->incarnation = incarnation;
    life->is_alive = 1;
    return life;
}

static void apply_join(const struct ring_entry *entry)
{
    struct life *self = S.now, *joined = life_of(entry->row, entry->incarnation);
    if (self->m.incarnations[entry->row] != entry->incarnation)
        return; /* of a former holder of the row */
    map_row(&self->m, entry->row);
    if (joined && joined->sponsor == self) {
        begin_life(joined, &self->m, self->log);
        joined->m.left_at[entry->row] = entry->slot;
        start(joined, joiner);
        S.joins++;
        S.reused += entry->incarnation > 1;
    }
}

/* Apply all that there is. Returns whether this member is still in. */
static int apply_all(void)
{
    struct ring_member *m = &S.now->m;
    struct ring_entry entry = {0};
    uint64_t words[3] = {0, 0, 0};
    int found;
    while ((found = ring_next(m, &entry)) > 0) {
        if (!entry.kind)
            for (int i = 0; i < 3; i++) {
                sim_step();
                memcpy(&words[i], entry.bytes + 8 * i, 8);
            }
        if (!entry.kind && !ring_is_in(m))
            return 0;
        if (entry.kind)
            words[0] = words[1] = words[2] = entry.word & 0x1ffffffff;
        CHECK(words[0] == words[1] && words[1] == words[2], "a torn packet");
        CHECK(entry.slot < S.tail && words[0] == S.truth[entry.slot], "one order, without gaps");
        S.now->log[entry.slot] = words[0];
        ring_applied(m, &entry);
        if (entry.kind == RING_JOIN)
            apply_join(&entry);
    }
    if (found < 0) {
        CHECK(found == RING_OUT, "a fault in sound memory");
        return 0;
    }
    ring_advance(m);
    return 1;
}

static int put_view(unsigned kind, unsigned row, uint32_t incarnation);

/* Strike and expel all that are known to be dead, or taken for dead. Returns whether still in. */
static int expel_known(int is_struck_only)
{
    struct ring_member *m = &S.now->m;
    if (!S.now->knows)
        return !m->is_out;
    S.now->has_notice = 0;
    ring_alarm_all(m);
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        if (!life->is_wanted_out || life == S.now)
            continue;
        ring_strike(m, life->row, life->incarnation);
        if (!is_struck_only && !put_view(RING_EXPEL, life->row, life->incarnation))
            return 0;
    }
    if (!is_struck_only && !S.now->has_notice)
        S.now->knows = 0;
    return !m->is_out;
}

static int make_room(void)
{
    if (!apply_all() || !expel_known(1))
        return 0;
    ring_wait_for_room(&S.now->m, -1);
    return 1;
}

/* What a packet is about, and the row that it is due to, if it is to one. */
static uint64_t about_of(uint64_t word)
{
    return word & RING_IS_VIEW || word % 7 == 6 ? RING_ANYTHING : 1ull << word % 4;
}

static uint64_t due_of(uint64_t word)
{
    return word & RING_IS_VIEW || word % 2 ? 0 : 1ull << word % RING_ROWS;
}

static int is_wanted(const struct life *life, uint64_t word)
{
    return about_of(word) == RING_ANYTHING || about_of(word) & life->interest || due_of(word) >> life->row & 1;
}

/* After an append, in either order: to wake first makes the call longer, and is earlier for the others. */
static int apply_and_wake(uint64_t word)
{
    int is_late = draw(3) != 0, is_in;
    if (!is_late)
        ring_wake(&S.now->m, about_of(word), due_of(word));
    is_in = apply_all();
    if (is_late)
        ring_wake(&S.now->m, about_of(word), due_of(word));
    return is_in;
}

/* Returns whether the view is in the order, and this member is still in. */
static int put_view(unsigned kind, unsigned row, uint32_t incarnation)
{
    struct ring_member *m = &S.now->m;
    int64_t slot;
    while ((slot = ring_append_view(m, kind, row, incarnation)) == RING_FULL)
        if (!make_room())
            return 0;
    CHECK(slot >= 0 || slot == RING_OUT, "a fault in sound memory");
    if (slot < 0)
        return 0;
    return apply_and_wake(RING_IS_VIEW);
}

static int write_one(void)
{
    struct life *self = S.now;
    struct ring_member *m = &self->m;
    uint64_t number = self->wrote + 1, word = (uint64_t)(self - S.lives) << 40 | number;
    uint32_t size = 24 + 8 * (uint32_t)draw(5);
    unsigned char *bytes = NULL;
    int64_t slot;
    int room, is_in;
    while ((room = ring_room(m, size, &bytes)) == RING_FULL)
        if (!make_room())
            return 0;
    CHECK(room == 0, "room for a small packet");
    for (int i = 0; i < 3; i++) {
        sim_step();
        memcpy(bytes + 8 * i, &word, 8);
    }
    while ((slot = ring_append(m, size, 1)) == RING_FULL)
        if (!make_room())
            return 0;
    CHECK(slot >= 0 || slot == RING_OUT, "a fault in sound memory");
    if (slot < 0)
        return 0;
    see_order();
    self->wrote = number;
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
    if (ring_has_news(&S.now->m) && !apply_all())
        return 0;
    if (S.now->m.is_out)
        return 0;
    CHECK(S.now->m.next >= tail, "a read sees all that was ordered before it began");
    S.reads++;
    return 1;
}

static int sponsor(void)
{
    struct life *joined;
    uint32_t incarnation = 0;
    int row = ring_offer_row(&S.now->m, &incarnation);
    if (row < 0 || S.count == LIVES)
        return 1;
    S.joins_left--;
    joined = make_life((unsigned)row, incarnation);
    joined->sponsor = S.now;
    for (int i = 0; i < S.count; i++) /* its lane is sent ahead, and mapped when it comes */
        if (S.lives[i].is_started)
            ring_map_lane(&S.lives[i].m, row, incarnation, joined->lane);
    return put_view(RING_JOIN, (unsigned)row, incarnation);
}

/* Sleep until there is news of some objects, or of none. */
static void doze_choosily(struct life *self)
{
    uint32_t before = ring_alarm_now(&self->m);
    self->interest = draw(8);
    if (!ring_arm(&self->m, self->interest))
        ring_rest(self->m.order, self->row, before, -1);
    else
        self->interest = RING_ANYTHING;
}

static void rest(void)
{
    struct life *self = S.now;
    self->interest = RING_ANYTHING;
    if (self->policy == CHOOSY && draw(2))
        doze_choosily(self);
    else if (self->policy == CHOOSY)
        ring_doze(&self->m, -1, 0);
    else if (self->policy < EVENTFD)
        ring_sleep(&self->m, self->policy, -1, 1000000);
    else if (!self->has_eventfd && !(self->has_eventfd = ring_use_eventfd(&self->m, 1)))
        ring_doze(&self->m, -1, 0);
    else {
        self->interest = draw(2) ? draw(8) : RING_ANYTHING;
        if (!ring_arm_eventfd(&self->m, self->interest))
            sleep_on_eventfd();
    }
}

static void member(void)
{
    struct life *self = S.now;
    struct ring_member *m = &self->m;
    int is_in = 1, is_writer = !S.is_calm || self == S.lives;
    while (is_in) {
        unsigned what = (unsigned)draw(16);
        if (self->knows)
            is_in = expel_known(0);
        else if (is_writer && self->wrote < WRITES && (what < 9 || S.is_calm))
            is_in = write_one();
        else if (what < 11)
            is_in = read_all();
        else if (what == 11 && S.joins_left > 0 && S.count < LIVES)
            is_in = sponsor();
        else if (what == 12 && S.leaves_left && draw(8) == 0) {
            S.leaves_left--;
            put_view(RING_LEAVE, self->row, self->incarnation);
            is_in = 0;
        } else if ((is_in = apply_all()) && !self->knows)
            rest();
        if (m->is_out)
            is_in = 0;
    }
    see_order();
    if (!self->is_wanted_out && !self->is_out_of_view)
        violated("a member is out that was not expelled");
    S.expelled++;
    finish();
}

/* When none runs: has each survivor applied all, or may it sleep? */
static void check_end(void)
{
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        uint64_t ordered = 0;
        S.fulls += (long)life->m.fulls;
        for (uint64_t slot = 0; slot < S.tail; slot++)
            ordered += S.truth[slot] >> 40 == (uint64_t)i && !(S.truth[slot] & RING_IS_VIEW);
        CHECK(ordered >= life->acknowledged, "acknowledged and lost");
        if (!life->is_started || !life->is_alive || life->is_done || life->is_wanted_out
            || life->is_out_of_view)
            continue;
        CHECK(life->sleeps_on != &S.order->room_alarm, "asleep for good, waiting for room");
        CHECK(life->wrote == WRITES || (S.is_calm && i) || life->sleeps_on, "a writer that is stuck");
        CHECK(S.tail - life->m.next < (life->policy == RING_LAZY || life->interest != RING_ANYTHING ? 5u : 1u),
              "asleep for good with news");
        for (uint64_t slot = life->m.next; life->policy >= EVENTFD && slot < S.tail; slot++)
            CHECK(!is_wanted(life, S.truth[slot]), "asleep for good with news that is wanted");
        CHECK(!S.is_calm || life->m.fulls == 0, "room is made before it is needed");
    }
}

static void prepare(uint64_t seed)
{
    int faults;
    S.seed = seed;
    S.rng = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < 8; i++)
        draw(1);
    S.now = NULL;
    S.count = 0;
    S.steps = 0;
    S.tail = 0;
    memset(S.order, 0, ring_order_size(SLOTS_LOG));
    S.is_calm = draw(8) == 0;
    S.joins_left = S.is_calm ? 0 : (int)draw(8);
    S.leaves_left = S.is_calm ? 0 : (int)draw(3);
    faults = S.is_calm ? 0 : (int)draw(FAULTS + 1);
    for (int i = 0; i < faults; i++) {
        S.faults[i].at = 50 + (long)draw(draw(2) ? 1000 : 4000);
        S.faults[i].kind = (int)draw(3);
    }
    for (int i = 1; i < faults; i++) /* the first one last */
        for (int j = i; j > 0 && S.faults[j].at > S.faults[j - 1].at; j--) {
            struct fault swapped = S.faults[j];
            S.faults[j] = S.faults[j - 1];
            S.faults[j - 1] = swapped;
        }
    S.faults_left = faults;
    for (unsigned i = 0; i < FIRST; i++) {
        unsigned row = i == 0 ? 4 : i - 1;
        begin_life(make_life(row, 1), NULL, NULL);
        atomic_store(&S.order->rows[row].state,
                     ring_state_word(1, ring_sponsor(row, 1), RING_JOINING));
    }
    for (int i = 0; i < FIRST; i++) {
        struct ring_member *m = &S.lives[i].m;
        m->members = 0x13;
        m->incarnations[0] = m->incarnations[1] = m->incarnations[4] = 1;
        map_row(m, 0);
        map_row(m, 1);
        map_row(m, 4);
        start(&S.lives[i], joiner);
    }
}

static void run_seed(uint64_t seed)
{
    struct life *life;
    prepare(seed);
    while (!S.violation && (life = chosen())) {
        run(life);
        CHECK(S.steps < STEPS_MAX && S.tail < SLOTS_MAX - 1, "runs without end");
    }
    if (!S.violation)
        check_end();
    S.total_steps += S.steps;
}

static void show_lives(void)
{
    fprintf(stderr, "slots %lu, sleepers %lx, room waiters %lx\n", (unsigned long)S.tail,
            (unsigned long)S.order->sleepers, (unsigned long)S.order->room_waiters);
    for (int i = 0; i < S.count; i++) {
        const struct life *life = &S.lives[i];
        const char *on = life->sleeps_on == &S.order->room_alarm ? "room" : "news";
        fprintf(stderr,
                "%d: row %u.%u state %x applied %lu, next %lu scanned %lu least %lu, wrote %lu, "
                "started %d alive %d done %d stopped %d wanted out %d knows %d policy %d sleeps %s\n",
                i, life->row, life->incarnation, S.order->rows[life->row].state,
                (unsigned long)S.order->rows[life->row].applied, (unsigned long)life->m.next,
                (unsigned long)life->m.scanned, (unsigned long)life->m.least,
                (unsigned long)life->wrote, life->is_started, life->is_alive, life->is_done,
                life->is_stopped, life->is_wanted_out, life->knows, life->policy,
                life->sleeps_on ? on : "no");
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
           "\"joins\": %ld, \"reused\": %ld, \"writes\": %ld, \"reads\": %ld, \"fulls\": %ld, "
           "\"seed\": %ld, \"violation\": \"%s\"}\n",
           done, S.total_steps, S.kills, S.stops, S.expelled, S.joins, S.reused, S.writes, S.reads,
           S.fulls, S.violation ? (long)S.seed : 0, S.violation ? S.violation : "");
    return S.violation != NULL;
}
