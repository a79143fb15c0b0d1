/* threads WRITES: members as threads of one process, for ThreadSanitizer: each writes, sleeps, and applies all
 * that all have written. Prints a line of JSON. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "order.h"

enum { MEMBERS = 3, SLOTS_LOG = 6, LANE = 4096 };

static struct ring_order *order;
static unsigned char *lanes[MEMBERS];
static long writes = 1000, broken[MEMBERS], fulls[MEMBERS];
static uint64_t digests[MEMBERS], counts[MEMBERS][MEMBERS];

static void apply_all(struct ring_member *m)
{
    struct ring_entry entry = {0};
    while (ring_next(m, &entry) > 0) {
        uint64_t words[2];
        memcpy(words, entry.bytes, sizeof words);
        broken[m->row] += words[0] != words[1] || ++counts[m->row][entry.row] != words[0];
        digests[m->row] = (digests[m->row] ^ words[0] ^ (uint64_t)entry.row << 40) * 1099511628211ull;
        ring_applied(m, &entry);
    }
    ring_advance(m);
}

/* Sleep until there is news, for `ns` at most. */
static void rest(struct ring_member *m, int64_t ns)
{
    uint32_t before = ring_alarm_now(m);
    if (!ring_arm(m, RING_ANYTHING))
        ring_rest(m->order, m->row, before, ns);
}

/* Others must apply first: wake them, and try again in a while. */
static void make_room(struct ring_member *m)
{
    apply_all(m);
    ring_wake_all(m);
    rest(m, 1000000);
}

static void put_one(struct ring_member *m, uint64_t number)
{
    uint64_t words[2] = {number, number};
    unsigned char *bytes = NULL;
    while (ring_room(m, sizeof words, &bytes) == RING_FULL)
        make_room(m);
    memcpy(bytes, words, sizeof words);
    while (ring_append(m, sizeof words, 1) == RING_FULL)
        make_room(m);
    apply_all(m);
    ring_wake(m, RING_ANYTHING, 0);
}

static void *run(void *argument)
{
    struct ring_member *m = argument;
    uint64_t all = (uint64_t)writes * MEMBERS;
    ring_take_row(m, m->row, 1, 1);
    for (long number = 1; number <= writes; number++) {
        put_one(m, (uint64_t)number);
        if (number % 16 == 0) {
            rest(m, 200000);
            apply_all(m);
        }
    }
    while (m->next < all) {
        rest(m, -1); /* a wake-up that is lost is a run without end */
        apply_all(m);
    }
    fulls[m->row] = (long)m->fulls;
    return NULL;
}

int main(int argc, char **argv)
{
    struct ring_member *members = calloc(MEMBERS, sizeof *members);
    pthread_t threads[MEMBERS];
    int is_same = 1;
    long wrong = 0, filled = 0;
    if (argc > 1)
        writes = atol(argv[1]);
    order = aligned_alloc(64, ring_order_size(SLOTS_LOG));
    memset(order, 0, ring_order_size(SLOTS_LOG));
    for (unsigned row = 0; row < MEMBERS; row++) {
        lanes[row] = calloc(1, LANE);
        atomic_store(&order->rows[row].state,
                     ring_state_word(1, ring_sponsor(row, 1), RING_JOINING));
    }
    for (unsigned row = 0; row < MEMBERS; row++) {
        struct ring_member *m = &members[row];
        ring_begin(m, order, SLOTS_LOG, LANE, 0);
        m->row = row;
        m->members = (1u << MEMBERS) - 1;
        m->own_lane = lanes[row];
        for (unsigned other = 0; other < MEMBERS; other++) {
            m->incarnations[other] = 1;
            ring_map_lane(m, other, 1, lanes[other]);
        }
    }
    for (unsigned row = 0; row < MEMBERS; row++)
        if (pthread_create(&threads[row], NULL, run, &members[row]))
            return 2;
    for (unsigned row = 0; row < MEMBERS; row++) {
        pthread_join(threads[row], NULL);
        is_same &= digests[row] == digests[0];
        wrong += broken[row];
        filled += fulls[row];
    }
    printf("{\"entries\": %lu, \"same\": %d, \"broken\": %ld, \"fulls\": %ld}\n",
           (unsigned long)members[0].next, is_same, wrong, filled);
    free(members);
    return 0;
}
