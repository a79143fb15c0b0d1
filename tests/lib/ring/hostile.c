/* hostile ROUNDS SEED: words of slots, rows, alarms and lanes are overwritten at random while two members
 * write and apply. What they answer must be a fault that has a name, or nothing. Built with
 * AddressSanitizer, so that no byte outside of the segments is touched. Prints a line of JSON. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "order.h"

enum { SLOTS_LOG = 4, LANE = 1024, FAULT_KINDS = 14 };

static uint64_t state = 1;
static long faults[FAULT_KINDS], entries, appended, rounds_without, unnamed, outside;
static struct ring_order *order;
static unsigned char *lanes[2];
static struct ring_member members[2];

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* Two members in the view, nothing in the order. */
static void begin(void)
{
    memset(order, 0, ring_order_size(SLOTS_LOG));
    memset(lanes[0], 0, LANE);
    memset(lanes[1], 0, LANE);
    for (unsigned row = 0; row < 2; row++) {
        struct ring_member *m = &members[row];
        ring_begin(m, order, SLOTS_LOG, LANE, 0);
        m->members = 3;
        m->view = 1;
        m->reserve = 2;
        m->own_lane = lanes[row];
        for (unsigned other = 0; other < 2; other++) {
            m->incarnations[other] = 1;
            ring_map_lane(m, other, 1, lanes[other]);
        }
        atomic_store(&order->rows[row].state,
                     ring_state_word(1, ring_sponsor(row, 1), RING_JOINING));
        ring_take_row(m, row, 1, 1);
    }
}

/* A word that was there, with some bits changed; or any; or a small one. */
static void damage(void)
{
    uint64_t *word, *slots = (uint64_t *)(void *)order->slots, all;
    switch (draw(4)) {
    case 0:
        word = &slots[draw(1u << SLOTS_LOG)];
        break;
    case 1: /* rows and alarms; the header is not read again */
        all = (offsetof(struct ring_order, slots) - offsetof(struct ring_order, sleepers)) / 8;
        word = (uint64_t *)(void *)&order->sleepers + draw(all);
        break;
    case 2:
        word = (uint64_t *)(void *)&order->rows[draw(2)] + draw(sizeof(struct ring_row) / 8);
        break;
    default:
        word = (uint64_t *)(void *)lanes[draw(2)] + draw(LANE / 8);
    }
    switch (draw(3)) {
    case 0:
        *word ^= 1ull << draw(64);
        break;
    case 1:
        *word = draw(UINT64_MAX);
        break;
    default:
        *word = draw(2) ? draw(4096) : *word ^ draw(UINT64_MAX) >> draw(64);
    }
}

static int noted(int64_t code)
{
    if (code >= 0)
        return 1;
    if (-code < FAULT_KINDS)
        faults[-code]++;
    else
        unnamed++;
    return code == RING_FULL;
}

/* Go on behind a fence, with both rows. */
static int go_on(struct ring_member *m)
{
    ring_pass_fence(m, m->view + 1);
    ring_admit(m, 0, 1);
    ring_admit(m, 1, 1);
    ring_use_alarm(m, 1);
    ring_say_begun(m, draw(2) ? RING_READS_ALL : 0);
    return 1;
}

static int apply_all(struct ring_member *m)
{
    struct ring_entry entry = {0};
    int found = 0;
    for (int i = 0; i < 100 && (found = ring_next(m, &entry)) > 0; i++) {
        unsigned sum = 0;
        for (uint32_t at = 0; !entry.kind && at < entry.size; at++)
            sum += entry.bytes[at]; /* to touch all of it */
        outside += entry.row >= RING_ROWS || sum > 255u * LANE;
        entries++;
        ring_applied(m, &entry);
    }
    ring_advance(m);
    return found == RING_FENCED ? go_on(m) : noted(found);
}

static int act(struct ring_member *m)
{
    unsigned char *bytes = NULL;
    uint32_t size = (uint32_t)draw(241);
    int64_t result;
    switch (draw(8)) {
    case 0:
        result = ring_append_fence(m);
        break;
    case 1:
        if (draw(8) == 0)
            ring_admit(m, (unsigned)draw(RING_ROWS), (uint32_t)draw(4));
        ring_say_since(m);
        ring_say_alone(m, draw(UINT64_MAX));
        return ring_vouches_for(m, (unsigned)draw(RING_ROWS)) + ring_not_begun(m, RING_READS_ALL) % 2 + 1;
    case 2:
        if (draw(8) == 0)
            ring_drop(m, (unsigned)draw(RING_ROWS));
        ring_use_alarm(m, 1);
        ring_arm_eventfd(m, draw(UINT64_MAX));
        ring_wake_last(m);
        return 1;
    case 3:
        if (!ring_arm(m, draw(UINT64_MAX)))
            ring_rest(order, m->row, ring_alarm_now(m), 0);
        ring_wake_all(m);
        return 1;
    default:
        result = ring_room(m, size, &bytes);
        if (result == 0) {
            memset(bytes, (int)size, size);
            result = ring_append(m, size, 1);
            appended += result >= 0;
        }
        ring_wake(m, draw(2) ? RING_ANYTHING : draw(UINT64_MAX), draw(4));
    }
    return result == RING_FENCED || noted(result);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    state = argc > 2 ? (uint64_t)atol(argv[2]) : 1;
    order = aligned_alloc(64, ring_order_size(SLOTS_LOG));
    lanes[0] = malloc(LANE);
    lanes[1] = malloc(LANE);
    for (long round = 0; round < rounds; round++) {
        int is_sound = 1;
        begin();
        for (int i = 0; i < 40 && is_sound; i++) {
            struct ring_member *m = &members[draw(2)];
            if (draw(4) == 0)
                damage();
            is_sound = draw(2) ? act(m) : apply_all(m);
        }
        rounds_without += is_sound;
    }
    printf("{\"rounds\": %ld, \"sound\": %ld, \"entries\": %ld, \"appended\": %ld, \"unnamed\": %ld, "
           "\"outside\": %ld, \"faults\": [0",
           rounds, rounds_without, entries, appended, unnamed, outside);
    for (int i = 1; i < FAULT_KINDS; i++)
        printf(", %ld", faults[i]);
    printf("]}\n");
    return 0;
}
