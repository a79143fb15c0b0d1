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

/* Go on as the joiner that another member, of which this is a fork, has let in. */
static void become(struct ring_member *m, unsigned row, uint32_t incarnation, unsigned char *lane)
{
    struct ring_member donor = *m;
    ring_begin(m, donor.order, donor.slots_log, donor.lane_size, donor.next);
    m->members = donor.members;
    memcpy(m->incarnations, donor.incarnations, sizeof m->incarnations);
    memcpy(m->tickets, donor.tickets, sizeof m->tickets);
    memcpy(m->lanes, donor.lanes, sizeof m->lanes);
    memcpy(m->lane_incarnations, donor.lane_incarnations, sizeof m->lane_incarnations);
    m->own_lane = lane;
    if (ring_take_row(m, row, incarnation, (uint32_t)getpid()))
        _exit(3);
    ring_map_lane(m, row, incarnation, lane);
}


#endif
