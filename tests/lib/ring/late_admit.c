/* late_admit STEP: a member stops before that atomic step of `ring_admit`, in a view that admits a joiner. The others go on
 * without it, and write until the order is full; the joiner applies all. Then the member goes on. Prints a line of JSON:
 * whether it stopped there, and how many of the writes after that found the order full. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static long step, stops_at;
static ucontext_t the_rest, late;
static void count_step(void)
{
    if (stops_at && ++step == stops_at)
        swapcontext(&late, &the_rest);
}
#define RING_STEP() count_step()
#include "order.h"

enum { SLOTS_LOG = 6, LANE = 8192, ROWS = 3, JOINER = 2, INCARNATION = 5, SIZE = 16, WRITES = 1000 };

static struct ring_order *order;
static struct ring_member members[ROWS];
static unsigned char *lanes[ROWS];

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(2);
    }
}

static struct ring_member *begin(unsigned row, uint32_t incarnation, uint64_t next)
{
    struct ring_member *m = &members[row];
    ring_begin(m, order, SLOTS_LOG, LANE, next);
    m->row = row;
    m->incarnation = incarnation;
    m->own_lane = lanes[row];
    return m;
}

/* The member has the view with this number, and these rows. */
static void settle(struct ring_member *m, uint32_t view, uint64_t rows)
{
    m->view = ring_fence_number(view);
    m->reserve = 8;
    for (unsigned row = 0; row < ROWS; row++)
        if (rows >> row & 1)
            ring_admit(m, row, row == JOINER ? INCARNATION : 1);
}

static void map_lanes(struct ring_member *m)
{
    for (unsigned row = 0; row < ROWS; row++)
        if (m->members >> row & 1)
            ring_map_lane(m, row, m->incarnations[row], lanes[row]);
}

static int apply(struct ring_member *m)
{
    struct ring_entry entry = {0};
    int found;
    while ((found = ring_next(m, &entry)) > 0)
        ring_applied(m, &entry);
    ring_advance(m);
    return found;
}

static int64_t write_one(struct ring_member *m)
{
    unsigned char *bytes = NULL;
    int64_t found = ring_room(m, SIZE, &bytes);
    if (found < 0)
        return found;
    memset(bytes, 0, SIZE);
    return ring_append(m, SIZE, 1);
}

static void end_view(struct ring_member *m, unsigned gone)
{
    check(ring_append_fence(m) == 0 && apply(m) == RING_FENCED, "the view does not end");
    if (gone < ROWS)
        ring_drop(m, gone);
    ring_pass_fence(m, m->view);
}

static void admit_joiner(void) { settle(&members[0], 2, 7); }

int main(int argc, char **argv)
{
    static char stack[1 << 16];
    struct ring_member *other, *joiner;
    static int full, stopped; /* of no register: contexts are switched meanwhile */
    check(argc == 2, "late_admit STEP");
    order = aligned_alloc(4096, (ring_order_size(SLOTS_LOG) + 4095) & ~4095ull);
    memset(order, 0, ring_order_size(SLOTS_LOG));
    for (int row = 0; row < ROWS; row++)
        lanes[row] = calloc(1, LANE);
    check(ring_found(begin(0, 1, 0), 0, 1, 1) == 0, "no order");
    other = begin(1, 1, 0);
    settle(&members[0], 1, 3);
    settle(other, 1, 3);
    check(ring_take_row(other, 1, 1, 1) == 0, "no row");
    map_lanes(&members[0]);
    map_lanes(other);
    end_view(&members[0], ROWS);
    end_view(other, ROWS);

    getcontext(&late);
    late.uc_stack.ss_sp = stack;
    late.uc_stack.ss_size = sizeof stack;
    late.uc_link = &the_rest;
    makecontext(&late, admit_joiner, 0);
    stops_at = atol(argv[1]);
    swapcontext(&the_rest, &late);
    stopped = step == stops_at;
    stops_at = 0;

    settle(other, 2, 7);
    joiner = begin(JOINER, INCARNATION, other->next);
    settle(joiner, 2, 7);
    check(ring_take_row(joiner, JOINER, INCARNATION, 1) == 0, "no row for the joiner");
    map_lanes(joiner);
    map_lanes(other);
    end_view(other, 0);
    end_view(joiner, 0);
    settle(other, 3, 6);
    settle(joiner, 3, 6);
    for (int i = 0; i < 2 << SLOTS_LOG; i++) {
        write_one(other);
        apply(other);
        if (i < 1 << SLOTS_LOG)
            apply(joiner);
    }
    check(write_one(other) == RING_FULL, "the order has no end");
    apply(joiner);
    if (stopped)
        swapcontext(&the_rest, &late);
    for (int i = 0; i < WRITES; i++) {
        full += write_one(other) == RING_FULL;
        apply(other);
        apply(joiner);
    }
    printf("{\"stopped\": %s, \"full\": %d}\n", stopped ? "true" : "false", full);
    return 0;
}
