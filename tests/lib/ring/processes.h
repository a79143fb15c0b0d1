/* Members in processes of their own, over memory that is inherited: what killstep.c and killload.c share. */
#ifndef PROCESSES_H
#define PROCESSES_H
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "order.h"

#define DIE(what) (perror(what), exit(2))

/* An order and lanes that forked children keep: the product's own mappings are not inherited. */
static struct ring_order *shared_order(uint32_t slots_log)
{
    void *memory = mmap(NULL, ring_order_size(slots_log), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        DIE("mmap");
    return memory;
}

static unsigned char *shared_lane(uint32_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        DIE("mmap");
    return memory;
}

/* A view that the members of a program have agreed on. */
struct agreed {
    uint32_t number;
    uint64_t rows;
    uint32_t incarnations[RING_ROWS];
};

/* As `settle_rows` of mapped_order.pyx. */
static inline void set_rows(struct ring_member *m, const struct agreed *view)
{
    m->view = ring_fence_number(view->number);
    m->reserve = (uint32_t)(ring_slots(m) / 8);
    for (unsigned row = 0; row < RING_ROWS; row++)
        if (view->rows >> row & 1)
            ring_admit(m, row, view->incarnations[row]);
    ring_use_alarm(m, (uint32_t)getpid());
}

/* As `pass_fence`: go on behind the fence; `lanes` are the rows'. */
static inline void pass_view(struct ring_member *m, const struct agreed *view, unsigned char *const *lanes)
{
    for (unsigned row = 0; row < RING_ROWS; row++)
        if (m->members >> row & 1 && (!(view->rows >> row & 1) || view->incarnations[row] != m->incarnations[row]))
            ring_drop(m, row);
    ring_pass_fence(m, view->number);
    set_rows(m, view);
    for (unsigned row = 0; row < RING_ROWS; row++)
        if (view->rows >> row & 1)
            ring_map_lane(m, row, view->incarnations[row], lanes[row]);
    if (ring_say_begun(m, RING_READS_ALL) && !ring_not_begun(m, RING_READS_ALL))
        ring_wake_all(m);
}

/* As `attach`: take the row that the view has, as a fork of a member that has begun it. Returns whether it was there. */
static inline int attach(struct ring_member *m, unsigned row, const struct agreed *view, unsigned char *const *lanes)
{
    struct ring_member donor = *m;
    ring_begin(m, donor.order, donor.slots_log, donor.lane_size, donor.next);
    m->row = row;
    m->incarnation = view->incarnations[row];
    m->own_lane = lanes[row];
    for (unsigned other = 0; other < RING_ROWS; other++)
        if (view->rows >> other & 1) {
            ring_admit(m, other, view->incarnations[other]);
            m->tickets[other] = donor.tickets[other];
            ring_map_lane(m, other, view->incarnations[other], lanes[other]);
        }
    if (ring_take_row(m, row, m->incarnation, (uint32_t)getpid()))
        return 0;
    set_rows(m, view);
    ring_say_since(m);
    if (ring_say_begun(m, RING_READS_ALL) && !ring_not_begun(m, RING_READS_ALL))
        ring_wake_all(m);
    return 1;
}

#endif
