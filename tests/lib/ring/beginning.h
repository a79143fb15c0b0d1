/* How a member begins a view, step by step as mapped_order.pyx and ring.pyx do it, and decides on the next one. */
#ifndef BEGINNING_H
#define BEGINNING_H
#include "agreement.h"

static void member(void);
static int apply_all(void);

static int have_all_begun(struct life *self)
{
    if (!self->is_attached || ring_not_begun(&self->m, RING_READS_ALL))
        return 0;
    return self->may_append = 1;
}

static void say_begun(struct life *self)
{
    struct ring_member *m = &self->m;
    int reads_all = self->mapped == S.views[self->view].rows;
    if (reads_all)
        self->said = self->view;
    if (!ring_say_begun(m, reads_all ? RING_READS_ALL : 0))
        CHECK(!ring_is_in(m), "a later member has this one's row");
    if (have_all_begun(self))
        ring_wake_all(m);
}

static void settle_rows(struct life *self)
{
    struct ring_member *m = &self->m;
    const struct view *view = &S.views[self->view];
    m->view = ring_fence_number(view->number);
    m->reserve = (uint32_t)(ring_slots(m) / 8);
    for (unsigned row = 0; row < RING_ROWS; row++)
        if (life_of(view, row))
            ring_admit(m, row, view->lives[row]->incarnation);
    ring_use_alarm(m, 1);
    self->is_armed = 0;
}

static void offer(struct life *self)
{
    self->offers = self->view;
    tell_all();
}

static void use(struct life *self)
{
    self->is_attached = 1;
    self->mapped = ring_own_bit(&self->m);
    settle_rows(self);
    ring_say_since(&self->m);
    say_begun(self);
    offer(self);
}

static void begin_life(struct life *self, uint64_t start)
{
    ring_begin(&self->m, S.order, SLOTS_LOG, LANE, start);
    self->m.row = self->row;
    self->m.incarnation = self->incarnation;
    self->m.own_lane = self->lane;
}

/* The first one makes the order. */
static void make(struct life *self)
{
    begin_life(self, 0);
    CHECK(!ring_found(&self->m, self->row, self->incarnation, 1), "an order that is another's");
    ring_map_lane(&self->m, self->row, self->incarnation, self->lane);
    use(self);
}

/* Another one has offered its memory: take the own row, if it is still there. */
static void attach(struct life *self)
{
    struct ring_member *m = &self->m;
    const struct view *view = &S.views[self->view];
    begin_life(self, view->start);
    for (unsigned row = 0; row < RING_ROWS; row++)
        if (life_of(view, row)) {
            ring_admit(m, row, view->lives[row]->incarnation);
            m->tickets[row] = view->tickets[row];
        }
    if (ring_take_row(m, self->row, self->incarnation, 1))
        return; /* the others have gone on without it, and say so */
    ring_map_lane(m, self->row, self->incarnation, self->lane);
    use(self);
}

/* Take what another one offers in this view, as long as it lives. One that has said that it is not attached stays so. */
static void take_offers(struct life *self)
{
    const struct view *view = &S.views[self->view];
    for (unsigned row = 0; row < RING_ROWS; row++) {
        struct life *other = life_of(view, row);
        if (!other || other == self || !is_living(other) || other->offers != self->view
            || self->mapped >> row & 1 || (!self->is_attached && self->reported == self->view))
            continue;
        self->place = ENTERING;
        if (!self->is_attached)
            attach(self);
        if (self->is_attached) {
            ring_map_lane(&self->m, row, other->incarnation, other->lane);
            self->m.eventfds[row] = (int)(other - S.lives);
            self->mapped |= 1ull << row;
            say_begun(self);
        }
        self->place = ANYWHERE;
    }
}

/* The next view has been decided, with this member: go on behind the fence. */
static void begin_view(struct life *self)
{
    struct ring_member *m = &self->m;
    const struct view *view = &S.views[++self->view];
    self->place = ENTERING;
    self->is_full = 0;
    if (self->is_attached) {
        if (!apply_all() || !self->at_fence || m->next + 1 != view->start)
            CHECK(self->is_out_of_view, "a member of the next view has come to the fence");
        for (unsigned row = 0; row < RING_ROWS; row++)
            if (m->members >> row & 1
                && (!life_of(view, row) || view->lives[row]->incarnation != m->incarnations[row])) {
                ring_drop(m, row);
                self->mapped &= ~(1ull << row);
            }
        self->may_append = 0;
        ring_pass_fence(m, view->number);
        settle_rows(self);
        self->at_fence = 0;
        say_begun(self);
        offer(self);
    }
    self->place = ANYWHERE;
}

/* Decide on the next view, if all that go on are at the fence. One that may live and is left out is noted first. */
static void decide_if_all_are_there(struct life *self)
{
    uint64_t rows;
    do {
        if (self->view != S.last || self->is_wanted_out || !self->at_fence || !have_all_reported())
            return;
        rows = left_out();
        if (rows)
            ring_say_alone(&self->m, rows);
    } while (rows != left_out());
    if (self->view == S.last && !self->is_wanted_out && self->is_alive && have_all_reported())
        decide(&self->m, member);
}

/* One that is dead has not gone on without this one, if it vouches for that. */
static void check_vouching(struct life *self)
{
    for (unsigned row = 0; self->is_attached && row < RING_ROWS; row++) {
        struct life *other = life_of(&S.views[self->view], row);
        if (other && !other->is_alive && ring_vouches_for(&self->m, row))
            CHECK(self->view == S.last || is_in_view(self, self->view + 1) || self->is_leaving
                      || S.views[self->view + 1].decider != other,
                  "one that has gone on without this member vouches for it");
    }
}

#endif
