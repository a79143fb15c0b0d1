/* What members agree on by messages, as an oracle: which view follows, when all that go on in it are at the fence.
 *
 * Any of them decides, and all others learn of it when they are scheduled; one that is not in it learns that when it
 * has nothing else to do, and so goes on late. */
#ifndef AGREEMENT_H
#define AGREEMENT_H
#include "simulator.h"

/* A message to all of the last view, which ends their sleep. It does not come to those that are taken for dead. */
static void tell_all(void)
{
    for (unsigned row = 0; row < RING_ROWS; row++) {
        struct life *life = life_of(&S.views[S.last], row);
        if (life && is_living(life) && (!life->is_wanted_out || life->is_leaving)) {
            life->has_notice = 1;
            life->sleeps_on = NULL;
        }
    }
}

/* Some members are to go, or to come: the others are asked to end the view, and learn of each. Whether they were told now. */
static int ask_for_a_view(void)
{
    int wanted = 0;
    for (int i = 0; i < S.count; i++)
        if (S.lives[i].is_wanted_out || (!S.lives[i].is_started && S.views[S.last].rows != RING_ALL_ROWS))
            wanted |= 1 << i;
    if (!(wanted & ~S.asked))
        return 0;
    S.asked |= wanted;
    tell_all();
    return 1;
}

/* Whether all that are to go on have come to the fence, or are not attached. */
static int have_all_reported(void)
{
    for (unsigned row = 0; row < RING_ROWS; row++) {
        struct life *life = life_of(&S.views[S.last], row);
        if (life && !life->is_wanted_out && life->reported != S.last)
            return 0;
    }
    return 1;
}

/* The rows of those that are to go, and may live. */
static uint64_t left_out(void)
{
    uint64_t rows = 0;
    for (unsigned row = 0; row < RING_ROWS; row++) {
        struct life *life = life_of(&S.views[S.last], row);
        if (life && life->is_wanted_out && is_living(life) && !life->is_leaving)
            rows |= 1ull << row;
    }
    return rows;
}

static void add_joiners(struct view *view, void (*body)(void))
{
    for (int i = 0; i < S.count; i++) {
        struct life *life = &S.lives[i];
        unsigned row = (unsigned)__builtin_ctzll(~view->rows);
        if (life->is_started || row >= RING_ROWS)
            continue;
        life->row = row;
        life->incarnation = (view->number - 1) % RING_INCARNATION_MASK + 1;
        life->view = S.last;
        view->rows |= 1ull << row;
        view->lives[row] = life;
        view->tickets[row] = 0;
        S.joins++;
        S.reused += S.last > 0 && S.views[S.last - 1].rows >> row & 1;
        start(life, body);
    }
}

/* The next view follows from here on, in one step: with those that stay, each in its row, and the joiners. */
static void decide(const struct ring_member *m, void (*body)(void))
{
    struct view *before = &S.views[S.last], *view = &S.views[++S.last];
    *view = *before;
    view->number = before->number + 1 + (uint32_t)(draw(4) == 0);
    view->decider = S.now;
    view->start = m->next + 1;
    memcpy(view->tickets, m->tickets, sizeof view->tickets);
    for (unsigned row = 0; row < RING_ROWS; row++) {
        struct life *life = life_of(before, row);
        if (life && life->is_wanted_out) {
            view->rows &= ~(1ull << row);
            life->is_wanted_out = 0;
            life->is_out_of_view = 1;
        }
    }
    add_joiners(view, body);
    S.asked = 0;
    CHECK(S.last < VIEWS - 1, "views without end");
    tell_all();
}

#endif
