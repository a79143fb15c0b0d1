/* The limit of a write that waits: its way without orcalike, as short as C can make it.
 *
 *     pingpong MEMBERS BYTES
 *
 * A sequencer and MEMBERS processes, joined by Unix stream sockets. Each line of standard input is a
 * number of round trips: the first member sends a message of BYTES to the sequencer, which passes
 * it to all members, and waits until its own has come back. Printed are the seconds of one round
 * trip. It ends when the input does.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS_MAX = 64, BYTES_MAX = 65536 };

static char message[BYTES_MAX];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Read one whole message; 0 where the other end is gone. */
static int receive(int fd, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t got = recv(fd, message + have, size - have, 0);
        if (got <= 0)
            return 0;
        have += got;
    }
    return 1;
}

static void pass(int fd, size_t size)
{
    if (send(fd, message, size, MSG_NOSIGNAL) != (ssize_t)size)
        fail("send");
}

/* Wait as a sequencer must that has several members, and pass each message to all. */
static void order(const int *fds, int members, size_t size)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    for (int i = 0; i < members; i++) {
        event.data.fd = fds[i];
        epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event);
    }
    while (epoll_wait(set, &event, 1, -1) == 1) {
        if (!receive(event.data.fd, size))
            exit(0);
        for (int i = 0; i < members; i++)
            pass(fds[i], size);
    }
}

/* The first member: round trips, as many as each line asks for. */
static void measure(int fd, size_t size)
{
    char line[64];
    struct timespec began, ended;
    while (fgets(line, sizeof line, stdin)) {
        long count = atol(line);
        clock_gettime(CLOCK_MONOTONIC, &began);
        for (long i = 0; i < count; i++) {
            pass(fd, size);
            if (!receive(fd, size))
                fail("receive");
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("%.12g\n", ((double)(ended.tv_sec - began.tv_sec)
                           + (double)(ended.tv_nsec - began.tv_nsec) / 1e9) / (double)count);
        fflush(stdout);
    }
}

/* A child that ends with this process. */
static int start_child(void)
{
    int parent = getpid();
    int pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)        /* it ended before it was asked for */
            exit(1);
    }
    return pid;
}

int main(int argc, char **argv)
{
    int members = argc == 3 ? atoi(argv[1]) : 0;
    size_t size = argc == 3 ? (size_t)atol(argv[2]) : 0;
    int mine[MEMBERS_MAX], sequencers[MEMBERS_MAX];
    if (members < 1 || members > MEMBERS_MAX || size < 1 || size > BYTES_MAX) {
        fprintf(stderr, "usage: pingpong MEMBERS BYTES\n");
        return 2;
    }
    for (int i = 0; i < members; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
            fail("socketpair");
        mine[i] = pair[0];
        sequencers[i] = pair[1];
    }
    if (start_child() == 0)
        order(sequencers, members, size);
    for (int i = 1; i < members; i++) {
        if (start_child() == 0) {
            while (receive(mine[i], size))
                ;
            return 0;
        }
    }
    measure(mine[0], size);
    return 0;
}
