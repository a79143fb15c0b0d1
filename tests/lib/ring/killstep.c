/* killstep kill|stop EVERY SLOTS: a member is stepped 0, 1, 2, ... machine instructions into what it does (each
 * EVERY-th number), and is killed there; or it stays stopped while the others end the view, go on without it and
 * write SLOTS slots, and goes on then; without SLOTS once around the whole ring; with 0 the next holder of its row
 * has come instead. What it does: a write that finds 0 to 3 slots taken, with and without a sleeper to wake; to
 * attach; to go on behind a fence, before the others and after them; to end the view, and to say that it is alone.
 *
 * Of two survivors, this process is one, and a child the other. Prints a line of JSON. */
#include "processes.h"
#include <sys/ptrace.h>

enum { SLOTS_LOG = 6, LANE = 8192, VICTIM = 2, GHOST = 3, WORDS = 6 };
enum { ATTACH = 4, GO_ON_FIRST = 5, GO_ON_LATER = 6, END_ALONE = 7, SITUATIONS = 8 };

static struct ring_member me;
static unsigned char *lanes[RING_ROWS]; /* the victims come one after the other, in one lane */
static struct agreed *view;             /* the last one, which all share */
static int fault;
static uint64_t digest = 14695981039346656037ull, seen[RING_ROWS], last[RING_ROWS];

/* Returns whether it has come to the fence. */
static int apply_all(void)
{
    struct ring_entry entry = {0};
    int found;
    while ((found = ring_next(&me, &entry)) > 0) {
        uint64_t number = 0;
        memcpy(&number, entry.bytes, sizeof number);
        if (!ring_is_in(&me))
            return 0;
        digest = (digest ^ (entry.word & 0x1ffffffff) ^ number * 31) * 1099511628211ull;
        seen[entry.row]++;
        last[entry.row] = number;
        ring_applied(&me, &entry);
    }
    if (found == 0 || found == RING_FENCED)
        ring_advance(&me);
    else if (found != RING_OUT)
        fault = found; /* of a late packet: no member has its row */
    return found == RING_FENCED;
}

static int put_one(uint64_t number)
{
    unsigned char *bytes = NULL;
    int64_t slot;
    if (ring_not_begun(&me, RING_READS_ALL))
        return RING_FENCED;
    slot = ring_room(&me, WORDS * 8, &bytes);
    if (slot < 0)
        return (int)slot;
    for (int i = 0; i < WORDS; i++)
        memcpy(bytes + 8 * i, &number, 8);
    slot = ring_append(&me, WORDS * 8, 1);
    if (slot < 0)
        return (int)slot;
    apply_all();
    ring_wake(&me, RING_ANYTHING, 0);
    return 0;
}

/* End the view, up to the fence; returns whether that could not be. */
static int end_view(void)
{
    int found = apply_all() ? 0 : ring_append_fence(&me);
    apply_all();
    return found != 0;
}

/* The other survivor does what it is asked to, and answers with its digest. */
static int to_other[2], from_other[2];
enum { LOOK = 0, END = 1, GO_ON = 2, WRITE = 3 };

static void other(void)
{
    uint64_t asked;
    while (read(to_other[0], &asked, 8) == 8) {
        uint64_t answer[3] = {0, 0, 0};
        if (asked == END)
            answer[2] = (uint64_t)end_view();
        else if (asked == GO_ON)
            pass_view(&me, view, lanes);
        else if (asked >= WRITE)
            answer[2] = put_one(asked) != 0;
        if (asked != END)
            apply_all();
        answer[0] = digest;
        answer[1] = me.next;
        if (write(from_other[1], answer, sizeof answer) < 0)
            _exit(1);
    }
    _exit(0);
}

/* Returns whether the other was blocked; `differs` counts if it has other than this one. */
static int ask_other(uint64_t what, int *differs)
{
    uint64_t answer[3];
    if (write(to_other[1], &what, 8) < 0 || read(from_other[0], answer, sizeof answer) != 24)
        DIE("the other survivor");
    apply_all();
    if (differs)
        *differs += answer[0] != digest || answer[1] != me.next;
    return (int)answer[2];
}

static struct {
    int cycles, acknowledged, landed, lost, twice, differ, blocked, refused, late;
} C;

/* Both survivors end the view; then it is decided which one follows. */
static void agree_on(uint64_t rows, uint64_t joining)
{
    C.blocked += end_view();
    C.blocked += ask_other(END, NULL);
    view->number++;
    view->rows = rows | joining;
    for (unsigned row = 0; row < RING_ROWS; row++)
        if (joining >> row & 1)
            view->incarnations[row] = view->number;
}

static void go_on(void)
{
    pass_view(&me, view, lanes);
    ask_other(GO_ON, NULL);
}

/* What the victim is stepped through. Returns whether it was done. */
static int do_part(int situation, uint64_t number)
{
    if (situation < ATTACH)
        return put_one(number) == 0;
    if (situation == ATTACH)
        return attach(&me, VICTIM, view, lanes) && put_one(number) == 0;
    if (situation == END_ALONE) {
        end_view();
        ring_say_alone(&me, 1);
        return 0; /* it has written nothing */
    }
    apply_all();
    pass_view(&me, view, lanes);
    return put_one(number) == 0;
}

static void victim(int situation, uint64_t number, int acknowledged)
{
    struct agreed begun = *view; /* what a late one knows stays as it was */
    char answer;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    if (situation != ATTACH && !attach(&me, VICTIM, view, lanes))
        _exit(3);
    raise(SIGSTOP); /* there is more to be agreed on, or to be written, first */
    begun = *view;
    view = &begun;
    raise(SIGSTOP);
    answer = do_part(situation, number) ? 'y' : 'n';
    if (write(acknowledged, &answer, 1) < 0)
        _exit(1);
    raise(SIGSTOP);
    _exit(0);
}

static void wait_for(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    if (!WIFSTOPPED(status))
        DIE("the victim ended");
}

static void let_go(pid_t pid)
{
    ptrace(PTRACE_CONT, pid, 0, 0);
    wait_for(pid);
}

static void end(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

/* The view that the victim is in, and what it finds as it begins. */
static pid_t let_in(int situation, uint64_t number, int acknowledged)
{
    pid_t pid;
    uint64_t ghost = situation == GO_ON_FIRST || situation == GO_ON_LATER ? 1u << GHOST : 0;
    agree_on(3, 1u << VICTIM | ghost);
    go_on();
    pid = fork();
    if (pid == 0)
        victim(situation, number, acknowledged);
    wait_for(pid);
    for (int i = 0; i < situation && situation < ATTACH; i++)
        put_one(7 + (uint64_t)i);
    if (ghost) { /* of one that never comes: it is dropped, and another one admitted */
        agree_on(7, 1u << GHOST);
        if (situation == GO_ON_LATER)
            go_on();
    }
    atomic_fetch_or(&me.order->sleepers, situation & 1 ? 2 : 0);
    let_go(pid);
    return pid;
}

/* Step the victim; returns whether its part was over before. */
static int step(pid_t pid, int steps)
{
    int status;
    for (int i = 0; i < steps; i++) {
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        waitpid(pid, &status, 0);
        if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP)
            return 1;
    }
    return 0;
}

static int slots_meanwhile = (1 << SLOTS_LOG) + 20;

static void overrun(void)
{
    for (int i = 0; i < slots_meanwhile; i++)
        if (put_one((uint64_t)i + 1) == RING_FULL) {
            ask_other(LOOK, NULL);
            i--;
        }
    ask_other(LOOK, NULL);
}

/* The words of the row that its holder alone writes; and its state. */
static void words_of(unsigned row, uint64_t *words)
{
    struct ring_row *it = &me.order->rows[row];
    words[0] = it->applied;
    words[1] = it->state;
    words[2] = it->holder & ~RING_IS_ARMED;
    words[3] = it->begun;
    words[4] = it->alone;
}

static void go_on_late(pid_t pid, int is_over)
{
    struct ring_member next = me;
    uint64_t before[5], after[5], at_expulsion;
    if (slots_meanwhile)
        overrun();
    else {
        agree_on(3, 1u << VICTIM);
        go_on();
        next = me;
        if (!attach(&next, VICTIM, view, lanes))
            DIE("the next holder");
    }
    at_expulsion = seen[VICTIM];
    words_of(VICTIM, before);
    if (!is_over)
        let_go(pid);
    end(pid);
    apply_all();
    words_of(VICTIM, after);
    C.late += seen[VICTIM] != at_expulsion || fault == RING_BAD_ROW || before[1] != after[1];
    if (!slots_meanwhile) {
        C.late += memcmp(before, after, sizeof after) != 0;
        agree_on(3, 0);
        go_on();
    }
}

/* The survivors go on without the victim, which is dead or stopped. */
static void expel(pid_t pid, int situation, int is_stop, int is_over)
{
    if (situation < ATTACH) { /* all had begun: they write still */
        C.blocked += put_one(3) != 0;
        C.blocked += ask_other(500, NULL);
    }
    if (situation == GO_ON_FIRST)
        go_on();
    agree_on(3, 0);
    go_on();
    C.blocked += put_one(4) != 0;
    C.blocked += ask_other(501, NULL);
    if (is_stop)
        go_on_late(pid, is_over);
    if (!fault)
        ask_other(LOOK, &C.differ);
}

/* One cycle; returns whether the part was over before the steps were. */
static int cycle(int is_stop, int situation, int steps)
{
    int answer_pipe[2], is_over, landed;
    uint64_t number = 1000000 + (uint64_t)C.cycles, before = seen[VICTIM];
    char answer = 0;
    pid_t pid;
    if (pipe(answer_pipe))
        DIE("pipe");
    pid = let_in(situation, number, answer_pipe[1]);
    is_over = step(pid, steps);
    C.cycles++;
    if (!is_stop)
        end(pid);
    expel(pid, situation, is_stop, is_over);
    close(answer_pipe[1]);
    if (read(answer_pipe[0], &answer, 1) < 0)
        DIE("read");
    close(answer_pipe[0]);
    landed = (int)(seen[VICTIM] - before);
    C.landed += landed;
    C.twice += landed > 1;
    C.acknowledged += answer == 'y';
    C.refused += answer == 'n';
    C.lost += answer == 'y' ? landed != 1 || last[VICTIM] != number : answer == 'n' && landed;
    return is_over;
}

/* The order, this process in row 0, and a child in row 1. */
static pid_t begin(void)
{
    pid_t child;
    if (pipe(to_other) || pipe(from_other))
        DIE("pipe");
    for (unsigned i = 0; i < RING_ROWS; i++)
        lanes[i] = i <= GHOST ? shared_lane(LANE) : NULL;
    view = (struct agreed *)(void *)shared_lane(sizeof *view);
    view->number = 1;
    view->rows = 3;
    view->incarnations[0] = view->incarnations[1] = 1;
    ring_begin(&me, shared_order(SLOTS_LOG), SLOTS_LOG, LANE, 0);
    if (ring_found(&me, 0, 1, (uint32_t)getpid()))
        DIE("found");
    me.own_lane = lanes[0];
    set_rows(&me, view);
    ring_map_lane(&me, 0, 1, lanes[0]);
    ring_map_lane(&me, 1, 1, lanes[1]);
    ring_say_since(&me);
    ring_say_begun(&me, RING_READS_ALL);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!attach(&me, 1, view, lanes))
            _exit(3);
        other();
    }
    return child;
}

int main(int argc, char **argv)
{
    int is_stop = argc > 1 && !strcmp(argv[1], "stop"), every = argc > 2 ? atoi(argv[2]) : 1;
    pid_t child = begin();
    if (argc > 3)
        slots_meanwhile = atoi(argv[3]);
    for (int situation = 0; situation < SITUATIONS && !fault; situation++)
        for (int steps = 0; !cycle(is_stop, situation, steps) && !fault; steps += every)
            ;
    kill(child, SIGKILL);
    printf("{\"cycles\": %d, \"acknowledged\": %d, \"landed\": %d, \"lost\": %d, \"twice\": %d, "
           "\"differ\": %d, \"blocked\": %d, \"refused\": %d, \"late\": %d, \"fault\": %d}\n",
           C.cycles, C.acknowledged, C.landed, C.lost, C.twice, C.differ, C.blocked, C.refused,
           C.late, fault);
    return 0;
}
