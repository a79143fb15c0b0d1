/* killload KILLS SEED: members write at full speed; one is killed at a random moment, again and again, and the view
 * goes on without it and with a new one in its row. Each checks the whole of each packet, each member's numbers, and
 * its digest where a view ends. Prints a line of JSON. */
#include "processes.h"

enum { SLOTS_LOG = 12, LANE = 1 << 18, ROWS = 4, LIVES = 1 << 14, PART = 256 };

struct life {
    _Alignas(64) _Atomic uint64_t acknowledged;
};
static struct shared {
    _Atomic uint64_t differ, broken;
    _Atomic uint64_t last; /* of the views that were decided */
    struct agreed views[LIVES];
    _Atomic uint64_t digests[LIVES]; /* where each view ends, of the first member that came there */
    struct life lives[LIVES];
} *shared;

static struct ring_member me;
static unsigned char *lanes[RING_ROWS];
static uint64_t at; /* the view of this member */
static int has_begun; /* all have begun it, and can read what is written */
static uint64_t digest = 14695981039346656037ull, counts[LIVES];

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void check_packet(const struct ring_entry *entry)
{
    uint64_t number, life, word;
    memcpy(&number, entry->bytes, 8);
    memcpy(&life, entry->bytes + 8, 8);
    for (uint32_t i = 2; i < entry->size / 8; i++) {
        memcpy(&word, entry->bytes + 8 * i, 8);
        if (word != (number ^ life << 32))
            atomic_fetch_add(&shared->broken, 1);
    }
    if (life >= LIVES || counts[life] + 1 != number)
        atomic_fetch_add(&shared->broken, 1);
    else
        counts[life] = number;
    digest = (digest ^ number ^ life << 40) * 1099511628211ull;
}

/* Apply all of the view. Returns 0, RING_FENCED, or RING_OUT. */
static int apply_all(void)
{
    struct ring_entry entry = {0};
    int found;
    while ((found = ring_next(&me, &entry)) > 0) {
        check_packet(&entry);
        ring_applied(&me, &entry);
    }
    if (found < 0 && found != RING_OUT && found != RING_FENCED)
        atomic_fetch_add(&shared->broken, 1);
    ring_advance(&me);
    return found;
}

static void compare_digest(void)
{
    uint64_t found = 0, own = digest | 1;
    if (!atomic_compare_exchange_strong(&shared->digests[at], &found, own))
        atomic_fetch_add(&shared->differ, found != own);
}

/* Sleep until there is news, for `ns` at most. */
static void rest(int64_t ns)
{
    uint32_t before = ring_alarm_now(&me);
    if (!ring_arm(&me, RING_ANYTHING))
        ring_rest(me.order, me.row, before, ns);
}

static void begin_view(void)
{
    pass_view(&me, &shared->views[++at], lanes);
    has_begun = 0;
}

/* Apply all, also of the views that follow. Returns whether this member is still in. */
static int go_on(void)
{
    int found;
    while ((found = apply_all()) == RING_FENCED) {
        compare_digest();
        while (atomic_load(&shared->last) == at) {
            if (!ring_is_in(&me))
                return 0;
            sched_yield();
        }
        begin_view();
    }
    has_begun = has_begun || !ring_not_begun(&me, RING_READS_ALL);
    return found == 0;
}

/* Others must begin the view, or apply, first: wake them, and look again in a while. */
static int64_t wait_for_others(void)
{
    if (has_begun)
        ring_wake_all(&me);
    rest(has_begun ? 1000000 : 100000);
    return RING_FULL;
}

static int64_t try_to_put(uint64_t number, uint64_t life)
{
    uint32_t words = 2 + (uint32_t)(number * 7 + life) % 60;
    uint64_t word = number ^ life << 32;
    unsigned char *bytes = NULL;
    int64_t slot;
    if (!go_on())
        return RING_OUT;
    if (!has_begun || ring_room(&me, words * 8, &bytes) == RING_FULL)
        return wait_for_others();
    memcpy(bytes, &number, 8);
    memcpy(bytes + 8, &life, 8);
    for (uint32_t i = 2; i < words; i++)
        memcpy(bytes + 8 * i, &word, 8);
    slot = ring_append(&me, words * 8, 1);
    return slot == RING_FULL ? wait_for_others() : slot;
}

static int put_one(uint64_t number, uint64_t life)
{
    int64_t slot;
    do
        slot = try_to_put(number, life);
    while (slot == RING_FULL || slot == RING_FENCED);
    if (slot >= 0) {
        apply_all();
        ring_wake(&me, RING_ANYTHING, 0);
    }
    return slot >= 0;
}

static void writer(unsigned row, uint64_t life)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!attach(&me, row, &shared->views[at], lanes))
        _exit(3);
    for (uint64_t number = 1; put_one(number, life); number++) {
        atomic_store(&shared->lives[life].acknowledged, number);
        if (number % PART == 0) { /* so that wakes are among what is killed */
            rest(20000);
            go_on();
        }
    }
    _exit(1);
}

struct running {
    pid_t pid;
    uint64_t life;
};
static uint64_t lives;

/* End the view. The next one has a new member in that row; returns how long the others were held up, us. */
static uint64_t change_view(unsigned row, struct running *it, uint64_t *lost)
{
    uint64_t start = nanoseconds();
    struct agreed *next = &shared->views[at + 1];
    while (ring_append_fence(&me) == RING_FULL)
        wait_for_others();
    ring_wake_all(&me);
    if (apply_all() != RING_FENCED)
        atomic_fetch_add(&shared->broken, 1);
    compare_digest();
    if (it->pid)
        *lost += counts[it->life] < atomic_load(&shared->lives[it->life].acknowledged);
    *next = shared->views[at];
    next->number++;
    next->rows |= 1ull << row;
    next->incarnations[row] = next->number;
    atomic_store(&shared->last, at + 1);
    begin_view();
    it->life = ++lives;
    it->pid = fork();
    if (it->pid == 0)
        writer(row, it->life);
    while (!has_begun && nanoseconds() - start < 10000000000u) {
        go_on();
        rest(100000);
    }
    if (!has_begun)
        atomic_fetch_add(&shared->broken, 1);
    return (nanoseconds() - start) / 1000;
}

static void stay_until(uint64_t end)
{
    while (nanoseconds() < end) {
        go_on();
        if (random() % 8 == 0)
            put_one(counts[0] + 1, 0);
        else
            rest(50000);
    }
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? atoi(argv[1]) : 100, status;
    uint64_t lost = 0, longest = 0;
    struct running running[ROWS] = {{0}};
    srandom(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    shared = (struct shared *)shared_lane(sizeof *shared);
    for (int i = 0; i < ROWS; i++)
        lanes[i] = shared_lane(LANE);
    ring_begin(&me, shared_order(SLOTS_LOG), SLOTS_LOG, LANE, 0);
    me.own_lane = lanes[0];
    if (kills >= LIVES - 2 * ROWS || ring_found(&me, 0, 1, (uint32_t)getpid()))
        DIE("begin");
    shared->views[0] = (struct agreed){.number = 1, .rows = 1, .incarnations = {1}};
    ring_map_lane(&me, 0, 1, lanes[0]);
    set_rows(&me, &shared->views[0]);
    ring_say_since(&me);
    ring_say_begun(&me, RING_READS_ALL);
    for (unsigned i = 1; i < ROWS; i++)
        change_view(i, &running[i], &lost);
    for (int i = 0; i < kills; i++) {
        unsigned row = 1 + (unsigned)random() % (ROWS - 1);
        uint64_t took;
        stay_until(nanoseconds() + (uint64_t)random() % 1500000);
        kill(running[row].pid, SIGKILL);
        waitpid(running[row].pid, &status, 0);
        took = change_view(row, &running[row], &lost);
        if (took > longest)
            longest = took;
    }
    for (int i = 1; i < ROWS; i++) {
        kill(running[i].pid, SIGKILL);
        waitpid(running[i].pid, &status, 0);
    }
    printf("{\"kills\": %d, \"packets\": %lu, \"lost\": %lu, \"differ\": %lu, \"broken\": %lu, "
           "\"longest us\": %lu}\n",
           kills, (unsigned long)me.next, (unsigned long)lost, (unsigned long)shared->differ,
           (unsigned long)shared->broken, (unsigned long)longest);
    return 0;
}
