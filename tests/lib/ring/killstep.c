/* killstep kill|stop EVERY SLOTS: a member is stepped 0, 1, 2, ... machine instructions into a write (each EVERY-th
 * number), and is killed there; or it stays stopped while it is expelled and SLOTS slots are written, and goes on
 * then; without SLOTS once around the whole ring.
 * In four situations: the member finds 0 to 3 slots taken, with and without a sleeper to wake.
 *
 * Of two survivors, this process is one, and a child the other. Prints a line of JSON. */
#include "processes.h"
#include <sys/ptrace.h>

enum { SLOTS_LOG = 6, LANE = 8192, VICTIM = 2, WORDS = 6 };

static struct ring_member me;
static unsigned char *lanes[VICTIM + 1]; /* the victims come one after the other, in one lane */
static int fault;
static uint64_t digest = 14695981039346656037ull, seen[RING_ROWS], last[RING_ROWS];

static void apply_all(void)
{
    struct ring_entry entry = {0};
    int found;
    while ((found = ring_next(&me, &entry)) > 0) {
        uint64_t number = 0;
        if (!entry.kind)
            memcpy(&number, entry.bytes, sizeof number);
        if (!ring_is_in(&me))
            return;
        digest = (digest ^ (entry.word & 0x1ffffffff) ^ number * 31) * 1099511628211ull;
        if (!entry.kind) {
            seen[entry.row]++;
            last[entry.row] = number;
        }
        ring_applied(&me, &entry);
        if (entry.kind == RING_JOIN && entry.row <= VICTIM)
            ring_map_lane(&me, entry.row, entry.incarnation, lanes[entry.row]);
    }
    if (found == 0)
        ring_advance(&me);
    else if (found != RING_OUT)
        fault = found; /* of a late packet: no member has its row */
}

static int put_one(uint64_t number)
{
    unsigned char *bytes = NULL;
    int64_t slot = ring_room(&me, WORDS * 8, &bytes);
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

/* The other survivor: writes and applies when it is asked to, and answers with its digest. */
static int to_other[2], from_other[2];

static void other(void)
{
    uint64_t number;
    while (read(to_other[0], &number, 8) == 8) {
        uint64_t answer[3] = {0, 0, 0};
        if (number && put_one(number))
            answer[2] = 1;
        apply_all();
        answer[0] = digest;
        answer[1] = me.next;
        if (write(from_other[1], answer, sizeof answer) < 0)
            _exit(1);
    }
    _exit(0);
}

/* Returns whether the other was blocked; `digest_of` if it differs. */
static int ask_other(uint64_t number, int *differs)
{
    uint64_t answer[3];
    if (write(to_other[1], &number, 8) < 0 || read(from_other[0], answer, sizeof answer) != 24)
        DIE("the other survivor");
    apply_all();
    if (differs)
        *differs += answer[0] != digest || answer[1] != me.next;
    return (int)answer[2];
}

static void victim(uint64_t number, int acknowledged, uint32_t incarnation)
{
    int result;
    char answer;
    become(&me, VICTIM, incarnation, lanes[VICTIM]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    result = put_one(number);
    answer = result == 0 ? 'y' : 'n';
    if (write(acknowledged, &answer, 1) < 0)
        _exit(1);
    raise(SIGSTOP);
    _exit(0);
}

static struct {
    int cycles, acknowledged, landed, lost, twice, differ, blocked, refused, late;
} C;

static pid_t let_in(uint64_t number, int acknowledged, uint32_t *incarnation)
{
    pid_t pid;
    int row = ring_offer_row(&me, incarnation);
    if (row != VICTIM || ring_append_view(&me, RING_JOIN, VICTIM, *incarnation) < 0)
        DIE("no row for a joiner");
    apply_all();
    pid = fork();
    if (pid == 0)
        victim(number, acknowledged, *incarnation);
    return pid;
}

/* Step the victim; returns whether its write was over before. */
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
            ask_other(0, NULL);
            i--;
        }
    ask_other(0, NULL);
}

static void expel(pid_t pid, uint32_t incarnation, int is_stop, int is_over)
{
    uint64_t at_expulsion;
    int status;
    C.blocked += put_one(3) != 0;
    C.blocked += ask_other(500, NULL);
    ring_strike(&me, VICTIM, incarnation);
    C.blocked += ring_append_view(&me, RING_EXPEL, VICTIM, incarnation) < 0;
    apply_all();
    at_expulsion = seen[VICTIM];
    if (is_stop) {
        overrun();
        if (!is_over) {
            ptrace(PTRACE_CONT, pid, 0, 0);
            waitpid(pid, &status, 0);
        }
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        apply_all();
        C.late += seen[VICTIM] != at_expulsion || fault == RING_BAD_ROW;
    }
    if (!fault)
        ask_other(0, &C.differ);
}

/* One cycle; returns whether the write was over before the steps were. */
static int cycle(int is_stop, int situation, int steps)
{
    int answer_pipe[2], status, is_over, landed;
    uint64_t number = 1000000 + (uint64_t)C.cycles, before = seen[VICTIM];
    uint32_t incarnation = 0;
    char answer = 0;
    pid_t pid;
    if (pipe(answer_pipe))
        DIE("pipe");
    ask_other(0, NULL); /* so that the row can be used again */
    pid = let_in(number, answer_pipe[1], &incarnation);
    ask_other(0, NULL);
    atomic_fetch_or(&me.order->sleepers, situation & 1 ? 2 : 0);
    waitpid(pid, &status, 0);
    for (int i = 0; i < situation; i++)
        put_one(7 + (uint64_t)i);
    is_over = step(pid, steps);
    C.cycles++;
    if (!is_stop) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    expel(pid, incarnation, is_stop, is_over);
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
    uint32_t incarnation = 0;
    pid_t child;
    if (pipe(to_other) || pipe(from_other))
        DIE("pipe");
    for (int i = 0; i <= VICTIM; i++)
        lanes[i] = shared_lane(LANE);
    ring_begin(&me, shared_order(SLOTS_LOG), SLOTS_LOG, LANE, 0);
    if (ring_found(&me, 0, 1, (uint32_t)getpid()))
        DIE("found");
    me.own_lane = lanes[0];
    ring_map_lane(&me, 0, 1, lanes[0]);
    if (ring_offer_row(&me, &incarnation) != 1 || ring_append_view(&me, RING_JOIN, 1, 1) < 0)
        DIE("join");
    apply_all();
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        become(&me, 1, 1, lanes[1]);
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
    for (int situation = 0; situation < 4 && !fault; situation++)
        for (int steps = 0; !cycle(is_stop, situation, steps) && !fault; steps += every)
            ;
    kill(child, SIGKILL);
    printf("{\"cycles\": %d, \"acknowledged\": %d, \"landed\": %d, \"lost\": %d, \"twice\": %d, "
           "\"differ\": %d, \"blocked\": %d, \"refused\": %d, \"late\": %d, \"fault\": %d}\n",
           C.cycles, C.acknowledged, C.landed, C.lost, C.twice, C.differ, C.blocked, C.refused,
           C.late, fault);
    return 0;
}
