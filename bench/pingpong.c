/* The limit of a write that waits: its way without orcalike, as short as C can make it.
 *
 *     pingpong MEMBERS BYTES
 *     pingpong order PORT MEMBERS BYTES
 *     pingpong measure|follow HOST PORT BYTES
 *
 * A sequencer and MEMBERS processes, joined by Unix stream sockets; or each started by itself, at hosts
 * of their own, and joined by TCP. Each line of standard input is a
 * number of round trips: the first member sends a message of BYTES to the sequencer, which passes
 * it to all members, and waits until its own has come back. Printed are the seconds of one round
 * trip. It ends when the input does.
 */

#include <arpa/inet.h>
#include <netinet/tcp.h>
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

/* A stream socket of TCP that sends at once. */
static int tcp(void)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        fail("socket");
    return fd;
}

static int order_by_tcp(int port, int members, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fds[MEMBERS_MAX], on = 1, listener = tcp();
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 16) < 0)
        fail("bind");
    printf("\"listening\"\n");
    fflush(stdout);
    for (int i = 0; i < members; i++) {
        if ((fds[i] = accept(listener, NULL, NULL)) < 0)
            fail("accept");
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    order(fds, members, size);
    return 0;
}

static int join_by_tcp(const char *host, int port, size_t size, int follows)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fd = tcp();
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connect");
    if (!follows)
        measure(fd, size);
    while (follows && receive(fd, size))
        ;
    return 0;
}

int main(int argc, char **argv)
{
    int by_tcp = argc == 5;
    if (by_tcp && strcmp(argv[1], "order") == 0 && atoi(argv[3]) <= MEMBERS_MAX
        && atol(argv[4]) <= BYTES_MAX)
        return order_by_tcp(atoi(argv[2]), atoi(argv[3]), (size_t)atol(argv[4]));
    if (by_tcp && strcmp(argv[1], "order") != 0 && atol(argv[4]) <= BYTES_MAX)
        return join_by_tcp(argv[2], atoi(argv[3]), (size_t)atol(argv[4]),
                           strcmp(argv[1], "follow") == 0);
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
