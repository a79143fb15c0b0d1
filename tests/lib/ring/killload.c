/* killload KILLS SEED: members write at full speed; one is killed at a random moment, again and again, and a
 * new one is let in. Each checks the whole of each packet, each member's numbers, and digests at marks.
 * Prints a line of JSON. */
#include "processes.h"

enum { SLOTS_LOG = 12, LANE = 1 << 18, ROWS = 4, LIVES = 1 << 14, PART = 256 };

struct life {
    _Alignas(64) _Atomic uint64_t acknowledged;
};
static struct shared {
    _Atomic uint64_t differ, broken;
    struct life lives[LIVES];
} *shared;

static struct ring_member me;
static unsigned char *lanes[ROWS];
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

/* Returns whether this member is still in. */
static int apply_all(void)
{
    struct ring_entry entry = {0};
    int found;
    while ((found = ring_next(&me, &entry)) > 0) {
        if (!entry.kind)
            check_packet(&entry);
        ring_applied(&me, &entry);
        if (entry.kind == RING_JOIN)
            ring_map_lane(&me, entry.row, entry.incarnation, lanes[entry.row]);
        if (me.next % RING_MARK_EVERY == 0 && !ring_mark(&me, me.next, digest))
            atomic_fetch_add(&shared->differ, 1);
    }
    if (found < 0 && found != RING_OUT)
        atomic_fetch_add(&shared->broken, 1);
    ring_advance(&me);
    return found == 0;
}

static int make_room(void)
{
    if (!apply_all())
        return 0;
    ring_wait_for_room(&me, 1000000);
    return 1;
}

static int put_one(uint64_t number, uint64_t life)
{
    uint32_t words = 2 + (uint32_t)(number * 7 + life) % 60;
    uint64_t word = number ^ life << 32;
    unsigned char *bytes = NULL;
    int64_t slot;
    while (ring_room(&me, words * 8, &bytes) == RING_FULL)
        if (!make_room())
            return 0;
    memcpy(bytes, &number, 8);
    memcpy(bytes + 8, &life, 8);
    for (uint32_t i = 2; i < words; i++)
        memcpy(bytes + 8 * i, &word, 8);
    while ((slot = ring_append(&me, words * 8, 1)) == RING_FULL)
        if (!make_room())
            return 0;
    if (slot >= 0) {
        apply_all();
        ring_wake(&me, RING_ANYTHING, 0);
    }
    return slot >= 0;
}

static void put_view(unsigned kind, unsigned row, uint32_t incarnation)
{
    while (ring_append_view(&me, kind, row, incarnation) == RING_FULL)
        make_room();
    apply_all();
    ring_wake(&me, RING_ANYTHING, 0);
}

static void writer(unsigned row, uint32_t incarnation, uint64_t life)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    become(&me, row, incarnation, lanes[row]);
    for (uint64_t number = 1; put_one(number, life); number++) {
        atomic_store(&shared->lives[life].acknowledged, number);
        if (number % PART == 0) { /* so that wakes are among what is killed */
            ring_sleep(&me, RING_AT_ONCE, 20000, 0);
            apply_all();
        }
    }
    _exit(1);
}

struct running {
    pid_t pid;
    uint32_t incarnation;
    uint64_t life;
    unsigned row;
};
static uint64_t lives;

static struct running let_in(void)
{
    struct running it = {0};
    int row;
    while ((row = ring_offer_row(&me, &it.incarnation)) < 0 || row >= ROWS) {
        apply_all();
        sched_yield();
    }
    it.row = (unsigned)row;
    it.life = ++lives;
    put_view(RING_JOIN, it.row, it.incarnation);
    it.pid = fork();
    if (it.pid == 0)
        writer(it.row, it.incarnation, it.life);
    return it;
}

static void stay_until(uint64_t end)
{
    while (nanoseconds() < end) {
        apply_all();
        if (random() % 8 == 0)
            put_one(counts[0] + 1, 0);
        else
            ring_sleep(&me, (int)(random() % 3), 50000, 20000);
    }
}

int main(int argc, char **argv)
{
    int kills = argc > 1 ? atoi(argv[1]) : 100, status;
    uint64_t lost = 0, longest = 0;
    struct running running[ROWS];
    srandom(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    shared = (struct shared *)shared_lane(sizeof *shared);
    for (int i = 0; i < ROWS; i++)
        lanes[i] = shared_lane(LANE);
    ring_begin(&me, shared_order(SLOTS_LOG), SLOTS_LOG, LANE, 0);
    me.own_lane = lanes[0];
    if (kills >= LIVES - ROWS || ring_found(&me, 0, 1, (uint32_t)getpid()))
        DIE("begin");
    ring_map_lane(&me, 0, 1, lanes[0]);
    for (int i = 1; i < ROWS; i++)
        running[i] = let_in();
    for (int i = 0; i < kills; i++) {
        struct running *it = &running[1 + random() % (ROWS - 1)];
        uint64_t start;
        stay_until(nanoseconds() + (uint64_t)random() % 1500000);
        kill(it->pid, SIGKILL);
        waitpid(it->pid, &status, 0);
        start = nanoseconds();
        ring_alarm_all(&me);
        ring_strike(&me, it->row, it->incarnation);
        put_view(RING_EXPEL, it->row, it->incarnation);
        if (nanoseconds() - start > longest)
            longest = nanoseconds() - start;
        lost += counts[it->life] < atomic_load(&shared->lives[it->life].acknowledged);
        *it = let_in();
    }
    for (int i = 1; i < ROWS; i++) {
        kill(running[i].pid, SIGKILL);
        waitpid(running[i].pid, &status, 0);
    }
    printf("{\"kills\": %d, \"packets\": %lu, \"lost\": %lu, \"differ\": %lu, \"broken\": %lu, "
           "\"longest us\": %lu}\n",
           kills, (unsigned long)me.next, (unsigned long)lost, (unsigned long)shared->differ,
           (unsigned long)shared->broken, (unsigned long)longest / 1000);
    return 0;
}
