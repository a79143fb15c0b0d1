"""Heartbeats: datagrams that say that a process runs (A45, H65; H13, G13, G14).

They come from a native thread that needs no interpreter lock: a program that computes for long
without letting the lock go is slow, not dead, and to suspect it would be wrong. The thread
touches nothing but the table here, under its mutex; it sleeps until the next beat is due, and for
good if there is no member to beat to.

A beat is 56 bytes, little-endian:

    magic (4) | version | kind | 0 (2) | group (8) | sender (8) | target (8) | sent (8) | echo (8)
    | lease (8)

`group` is a digest of the group's name; sender and target are incarnations. `sent` is the sender's
monotonic clock, which serves as the beat's number: it grows from beat to beat. `echo` is the
latest `sent` that the sender has from the target, 0 if there is none. So a process that gets its own time
back knows that both directions worked then, and that it took the other no longer than one period
to say so: contact is known up to the echo plus one period, or up to now where that is less. Where
one direction is cut the echoes stop, and contact with them, at both ends.

`lease` is the key of the view in which the beat grants its target a lease, or 0 (`membership/lease.py`):
a beat grants one only while the endpoint grants any, and had contact with the target lately.

A view is installed everywhere at once, and a Unix socket queues few datagrams (10, as kernels
come). So that not the same beats find it full each time, a period is cut short by up to a quarter
of it, at random; and what did not go is tried a few times more within the period.

A beat from an endpoint that this one does not beat to is answered, once: its view may be newer than
ours, and a program that keeps the interpreter lock cannot tell this thread of the new view. So is
one to an endpoint that asks to be let in (`answer`). An answer is a beat of another kind, which is
not answered. Anything else that is not a beat for one of the stacks here is counted by its reason,
and dropped.

On a busy machine this thread can be late itself. What it does not send then cannot be answered, and
it takes nothing: it keeps account of how late it was, so that the silence of the others meanwhile,
and before they were beaten to at all, is not held against them (`excuses`).

The thread also looks, with each beat, whether what is dispatched in this process has run for long
(`watch_running`), and says so on an eventfd: no thread that runs Python can be trusted with that.
In a group of one there are no beats: it looks once a thread has to wait for another (`look_later`).

In a child after fork() there is no thread, and its mutex may be held for ever: there every method
leaves the table alone.
"""

from libc.errno cimport EAGAIN, EINTR, ENOBUFS, errno
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import os
from hashlib import blake2b

from orcalike.transport.degree import MEMBERS_MAX
from orcalike.transport.drivers import sockets
from orcalike.transport.errors import OrcalikeError

from orcalike.transport.drivers.driver cimport monotonic
from orcalike.transport.wire.bytes cimport load32, load64, store32, store64

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_create(pthread_t* thread, const void* attributes,
                       void* (*function)(void*) noexcept nogil, void* argument)
    int pthread_join(pthread_t thread, void** result)
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes)
    int pthread_mutex_destroy(pthread_mutex_t* mutex)
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int sigfillset(sigset_t* signals)
    int pthread_sigmask(int how, const sigset_t* signals, sigset_t* old)
    enum:
        SIG_SETMASK

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned int socklen_t
    struct sockaddr:
        unsigned short sa_family
    struct sockaddr_storage:
        unsigned short ss_family
    ssize_t recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* source,
                     socklen_t* length)
    ssize_t sendto(int fd, const void* buffer, size_t size, int flags, const sockaddr* target,
                   socklen_t length)
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* fds, unsigned long count, int timeout)
    enum:
        POLLIN
        POLLNVAL

cdef extern from "<sys/eventfd.h>" nogil:
    int eventfd(unsigned int value, int flags)
    enum:
        EFD_CLOEXEC
        EFD_NONBLOCK

cdef extern from "<unistd.h>" nogil:
    int close(int fd)
    int getpid()
    ssize_t read(int fd, void* buffer, size_t size)
    ssize_t write(int fd, const void* buffer, size_t size)

cdef enum:
    MAGIC = 0x62636F4F          # "Oocb" on the wire
    VERSION = 2
    BEAT = 1                    # kinds
    ANSWER = 2
    BEAT_SIZE = 56
    SOCKETS_MAX = 4
    SEATS_MAX = 256
    TAKEN_AT_ONCE = 64          # datagrams, before the thread looks at what is due
    TRIES = 3                   # to reach a full socket again, an eighth of the period apart

cdef int64_t LONG = 500000000       # ns: what has been dispatched for so long is told of
cdef int64_t IDLE = 3600000000000   # ns: how often one wakes that beats to no members

cdef enum:                      # what is counted
    SENT
    UNSENT
    TAKEN
    ANSWERED
    WRONG_SIZE
    WRONG_HEADER
    NOT_FOR_US
    STALE
    REASONS

COUNTED = ("sent", "unsent", "taken", "answered", "size", "header", "target", "stale")


cdef struct Contact:            # a member that is beaten to
    uint64_t incarnation
    sockaddr_storage address
    socklen_t length            # 0: it takes no datagrams
    bint blocked                # its socket was full
    bint cut                    # cut off on purpose: no beats go there, and none count
    bint unleased               # it learns of no death for certain, and so needs no lease
    uint64_t latest             # what its latest beat gave as `sent`
    int64_t known               # contact in both directions was known then; 0 for never
    int64_t since               # when it was first to be beaten to
    int64_t late                # the seat's `late` at the time `known`, or `since`
    int64_t granted             # when it got its last lease; 0 for never
    uint64_t lease              # key of the last lease that it gave
    int64_t leased              # the echo that came with that

cdef struct Seat:               # a stack that beats
    uint64_t group
    uint64_t incarnation
    int64_t period
    uint64_t lease              # what its beats grant, or 0
    int64_t window              # how old contact may be for that, ns
    int64_t due                 # when all are beaten to again
    int64_t wake                # when that is, or when those are tried again whose sockets were full
    int64_t late                # how late the thread was for the beats so far, in all
    int tries
    Contact* contacts
    int count

cdef struct Table:
    pthread_mutex_t mutex
    pthread_t thread
    int owner                   # the process that made it
    bint running
    bint stopping
    int wakeup                  # an eventfd that wakes the thread
    int fds[SOCKETS_MAX]
    unsigned short families[SOCKETS_MAX]
    int fd_count
    Seat seats[SEATS_MAX]
    int seat_count
    uint64_t dice
    uint64_t counts[REASONS]
    const bint* busy            # whether packets are being dispatched; NULL: not watched
    const int64_t* began        # since when
    int64_t told                # the `began` that was told of last
    int64_t look_at             # when to look what runs, although no beat is due then; 0: with the beats
    int long_wakeup             # an eventfd that is written to for what runs for long


cdef class Heartbeat:
    """The beats of one process: its sockets, its thread, and the members that its stacks beat to."""

    def __cinit__(self):
        self.sockets = []
        self.table = <Table*>calloc(1, sizeof(Table))
        if self.table is NULL:
            raise MemoryError
        pthread_mutex_init(&self.table.mutex, NULL)
        self.table.owner = getpid()
        self.table.dice = <uint64_t>monotonic() ^ <uint64_t>getpid() << 40 | 1
        self.table.wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.table.wakeup < 0:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        cdef int i
        if self.table is NULL:
            return
        self.stop()
        if self.table.wakeup >= 0:
            close(self.table.wakeup)
        if self.is_mine():
            pthread_mutex_destroy(&self.table.mutex)
        for i in range(self.table.seat_count):
            free(self.table.seats[i].contacts)
        free(self.table)

    cdef bint is_mine(self) noexcept:
        """Whether this is the process that made it, and no child after fork()."""
        return self.table.owner == getpid()

    def listen(self, sock):
        """Beat from, and to, a datagram socket too; it is closed by `close`.

        Raises OrcalikeError where there are too many.
        """
        cdef Table* table = self.table
        cdef int fd = sock.fileno()
        cdef unsigned short family = sock.family
        if not self.is_mine() or table.fd_count == SOCKETS_MAX:
            raise OrcalikeError(f"heartbeats from more than {SOCKETS_MAX} sockets")
        self.sockets.append(sock)
        with nogil:
            pthread_mutex_lock(&table.mutex)
            table.fds[table.fd_count] = fd
            table.families[table.fd_count] = family
            table.fd_count += 1
            pthread_mutex_unlock(&table.mutex)
        ring(table)

    def beat(self, incarnation, str group, int64_t period, members, uint64_t lease=0,
             int64_t window=0, cut=(), unleased=()):
        """From now on endpoint `incarnation` beats to these members of its group, each `period` ns.

        The beats grant a `lease` to each member that there was contact with within `window` ns, none
        if it is 0, and none to those that are `unleased`. From members that are `cut` off none count,
        and none go there. What is known of those that stay is kept. All are beaten to at once if there are new ones, or the lease is. With
        no members the endpoint has no seat here. Returns (incarnation, when) of each member that was
        granted a lease, ever. Raises ValueError for too many, OrcalikeError for too many endpoints.
        """
        cdef Table* table = self.table
        cdef Seat* seat
        cdef list granted = []
        cdef Contact* contacts = NULL
        cdef bytes address
        cdef bint placed
        cdef int i, count
        cdef uint64_t me = incarnation
        cdef uint64_t hashed = load64(blake2b(group.encode(), digest_size=8).digest())
        members = tuple(members)
        count = len(members)
        if count > MEMBERS_MAX or period <= 0:
            raise ValueError(f"beats to {count} members each {period} ns")
        if not self.is_mine():
            return granted
        if count:
            contacts = <Contact*>calloc(count, sizeof(Contact))
            if contacts is NULL:
                raise MemoryError
        try:
            for i in range(count):
                contacts[i].incarnation = members[i].incarnation
                address = sockets.datagram_address(members[i].address)
                contacts[i].length = <socklen_t>len(address)
                contacts[i].cut = members[i] in cut
                contacts[i].unleased = members[i] in unleased
                memcpy(&contacts[i].address, <const char*>address, len(address))
            with nogil:
                pthread_mutex_lock(&table.mutex)
                placed = place(table, me, hashed, period, &contacts, count, lease, window)
                pthread_mutex_unlock(&table.mutex)
            # Only beats grant, and none does that the seat does not say.
            seat = seat_of(table, me) if placed else NULL
            if seat is not NULL:
                granted = [(seat.contacts[i].incarnation, seat.contacts[i].granted)
                           for i in range(seat.count) if seat.contacts[i].granted]
        finally:
            free(contacts)
        if not placed:
            raise OrcalikeError(f"heartbeats of more than {SEATS_MAX} endpoints")
        if count:
            self.start()
            ring(table)
        return granted

    def leased(self, incarnation, other):
        """(key, when) of the last lease that endpoint `incarnation` has from `other`, or (0, 0).

        `when`, ns, is the time of the beat of this endpoint that the lease answers.
        """
        cdef Table* table = self.table
        cdef Seat* seat
        cdef Contact* contact = NULL
        cdef uint64_t me = incarnation, there = other, lease = 0
        cdef int64_t when = 0
        if not self.is_mine():
            return 0, 0
        with nogil:
            pthread_mutex_lock(&table.mutex)
            seat = seat_of(table, me)
            if seat is not NULL:
                contact = contact_of(seat, there)
            if contact is not NULL:
                lease, when = contact.lease, contact.leased
            pthread_mutex_unlock(&table.mutex)
        return lease, when

    def answer(self, incarnation, str group):
        """Endpoint `incarnation` answers beats from now on, until `beat` says which it sends.

        Nothing happens without a socket, where none can come. Raises OrcalikeError for too many
        endpoints.
        """
        cdef Table* table = self.table
        cdef uint64_t me = incarnation
        cdef uint64_t hashed = load64(blake2b(group.encode(), digest_size=8).digest())
        cdef bint placed
        if not self.is_mine() or not table.fd_count:
            return
        with nogil:
            pthread_mutex_lock(&table.mutex)
            placed = seat_of(table, me) is not NULL or take_seat(table, me, hashed) is not NULL
            pthread_mutex_unlock(&table.mutex)
        if not placed:
            raise OrcalikeError(f"heartbeats of more than {SEATS_MAX} endpoints")
        self.start()
        ring(table)

    def excuses(self, incarnation):
        """(incarnation, until) of each member that endpoint `incarnation` beats to.

        Its silence before the time `until`, ns, says nothing: it was not beaten to yet, or for as
        long as this thread was late itself since it was heard.
        """
        cdef Table* table = self.table
        cdef Seat* seat
        cdef int64_t* found = NULL
        cdef uint64_t me = incarnation
        cdef int64_t now, late
        cdef int i, count = 0
        if not self.is_mine():
            return []
        found = <int64_t*>malloc(2 * MEMBERS_MAX * sizeof(int64_t))
        if found is NULL:
            raise MemoryError
        with nogil:
            pthread_mutex_lock(&table.mutex)
            seat = seat_of(table, me)
            if seat is not NULL:
                now = monotonic()
                late = seat.late + lateness(seat, now)
                count = seat.count
                for i in range(count):
                    found[2 * i] = <int64_t>seat.contacts[i].incarnation
                    found[2 * i + 1] = min(now, late - seat.contacts[i].late + max(
                        seat.contacts[i].known, seat.contacts[i].since))
            pthread_mutex_unlock(&table.mutex)
        try:
            return [(<uint64_t>found[2 * i], found[2 * i + 1]) for i in range(count)]
        finally:
            free(found)

    def heard(self, incarnation):
        """(incarnation, when) of each member in contact with endpoint `incarnation`, ever.

        `when` is the latest time, ns, at which contact in both directions was known.
        """
        cdef Table* table = self.table
        cdef Seat* seat
        cdef uint64_t* found = NULL
        cdef uint64_t me = incarnation
        cdef int i, count = 0
        if not self.is_mine():
            return []
        found = <uint64_t*>malloc(2 * MEMBERS_MAX * sizeof(uint64_t))
        if found is NULL:
            raise MemoryError
        with nogil:
            pthread_mutex_lock(&table.mutex)
            seat = seat_of(table, me)
            if seat is not NULL:
                for i in range(seat.count):
                    if seat.contacts[i].known:
                        found[2 * count] = seat.contacts[i].incarnation
                        found[2 * count + 1] = seat.contacts[i].known
                        count += 1
            pthread_mutex_unlock(&table.mutex)
        try:
            return [(found[2 * i], found[2 * i + 1]) for i in range(count)]
        finally:
            free(found)

    cdef int watch_running(self, const bint* busy, const int64_t* began, int wakeup) except -1:
        """Ring this eventfd once for each `began` that is `LONG` ago while `busy`; NULL: no more."""
        cdef Table* table = self.table
        if self.is_mine():
            with nogil:
                pthread_mutex_lock(&table.mutex)
                table.busy, table.began, table.long_wakeup = busy, began, wakeup
                pthread_mutex_unlock(&table.mutex)
            if busy is not NULL:
                self.start()
        return 0

    cdef int look_later(self) noexcept:
        """A thread of this process waits for another one: look in `LONG` what runs, if no beat does."""
        cdef Table* table = self.table
        if table.seat_count or table.look_at or table.busy is NULL or not self.is_mine():
            return 0
        with nogil:
            pthread_mutex_lock(&table.mutex)
            table.look_at = monotonic() + LONG
            pthread_mutex_unlock(&table.mutex)
        ring(table)
        return 0

    @property
    def counts(self):
        """How many datagrams were sent, taken, answered, and dropped by which reason."""
        return {name: self.table.counts[i] for i, name in enumerate(COUNTED)}

    def close(self):
        """Stop the thread, close the sockets and remove their files; a forked child leaves those."""
        self.stop()
        self.table.fd_count = 0
        while self.sockets:
            sock = self.sockets.pop()
            if self.is_mine():
                sockets.close_datagrams(sock)
            else:
                sock.close()

    cdef int start(self) except -1:
        """Have the thread, with all signals blocked: Python's are for its own threads."""
        cdef sigset_t signals, old
        cdef int failed
        if self.table.running:
            return 0
        sigfillset(&signals)
        pthread_sigmask(SIG_SETMASK, &signals, &old)
        self.table.stopping = False
        failed = pthread_create(&self.table.thread, NULL, run, self.table)
        pthread_sigmask(SIG_SETMASK, &old, NULL)
        if failed:
            raise OSError(failed, os.strerror(failed))
        self.table.running = True
        return 0

    cdef int stop(self) noexcept:
        """End the thread, where there is one in this process."""
        cdef Table* table = self.table
        if table.running and self.is_mine():
            with nogil:
                pthread_mutex_lock(&table.mutex)
                table.stopping = True
                pthread_mutex_unlock(&table.mutex)
                ring(table)
                pthread_join(table.thread, NULL)
        table.running = False
        return 0


# The table; the caller of these holds its mutex.

cdef Seat* seat_of(Table* table, uint64_t incarnation) noexcept nogil:
    cdef int i
    for i in range(table.seat_count):
        if table.seats[i].incarnation == incarnation:
            return &table.seats[i]
    return NULL


cdef Contact* contact_of(Seat* seat, uint64_t incarnation) noexcept nogil:
    cdef int i
    for i in range(seat.count):
        if seat.contacts[i].incarnation == incarnation:
            return &seat.contacts[i]
    return NULL


cdef Seat* take_seat(Table* table, uint64_t me, uint64_t group) noexcept nogil:
    """A free seat, for an endpoint that beats to no members yet; NULL if there is none."""
    cdef Seat* seat = &table.seats[table.seat_count]
    if table.seat_count == SEATS_MAX:
        return NULL
    table.seat_count += 1
    memset(seat, 0, sizeof(Seat))
    seat.incarnation, seat.group, seat.period = me, group, IDLE
    seat.due = seat.wake = monotonic() + IDLE
    return seat


cdef int64_t lateness(Seat* seat, int64_t now) noexcept nogil:
    """How late the thread is for a seat's beats at the time `now`, if that is worth a word."""
    cdef int64_t late = now - seat.wake if seat.wake and seat.count else 0
    return late if late > seat.period // 4 else 0


cdef bint place(Table* table, uint64_t me, uint64_t group, int64_t period, Contact** given,
                int count, uint64_t lease, int64_t window) noexcept nogil:
    """Give the endpoint these contacts, and its old ones back; False where there is no room."""
    cdef Seat* seat = seat_of(table, me)
    cdef Contact* contacts = given[0]
    cdef Contact* before
    cdef bint fresh = False
    cdef int64_t now = monotonic()
    cdef int i
    if seat is NULL:
        if not count:
            return True
        seat = take_seat(table, me, group)
        if seat is NULL:
            return False
    for i in range(count):
        before = contact_of(seat, contacts[i].incarnation)
        if before is NULL:
            fresh = True
            contacts[i].since = now
            contacts[i].late = seat.late
        else:
            contacts[i].latest = before.latest
            contacts[i].known = before.known
            contacts[i].since = before.since
            contacts[i].late = before.late
            contacts[i].granted = before.granted
            contacts[i].lease = before.lease
            contacts[i].leased = before.leased
    given[0] = seat.contacts
    seat.incarnation, seat.group, seat.period = me, group, period
    seat.contacts, seat.count = contacts, count
    fresh |= lease != 0 and lease != seat.lease
    seat.lease, seat.window = lease, window
    if fresh:
        seat.due = seat.wake = 0
    if not count:
        table.seat_count -= 1
        seat[0] = table.seats[table.seat_count]
    return True


# The thread; no function here may touch a Python object.

cdef void ring(Table* table) noexcept nogil:
    cdef uint64_t one = 1
    write(table.wakeup, &one, 8)


cdef void* run(void* argument) noexcept nogil:
    """Send what is due and take what comes, until `stopping`."""
    cdef Table* table = <Table*>argument
    cdef pollfd fds[1 + SOCKETS_MAX]
    cdef int i, count, timeout
    cdef uint64_t value
    while True:
        pthread_mutex_lock(&table.mutex)
        if table.stopping:
            pthread_mutex_unlock(&table.mutex)
            return NULL
        timeout = send_due(table)
        count = 1 + table.fd_count
        for i in range(count):
            fds[i].fd = table.fds[i - 1] if i else table.wakeup
            fds[i].events = POLLIN
        pthread_mutex_unlock(&table.mutex)
        if poll(fds, count, timeout) <= 0:
            continue
        if fds[0].revents:
            read(table.wakeup, &value, 8)
        for i in range(1, count):
            if fds[i].revents & POLLNVAL:
                return NULL             # the program closed it: there is nothing to sleep on
            if fds[i].revents:
                receive(table, fds[i].fd)


cdef int send_due(Table* table) noexcept nogil:
    """Send the beats that are due; returns how long, in ms, until the next are; -1 for never."""
    cdef int64_t now = monotonic()
    cdef int64_t least = look_what_runs(table, now)
    cdef Seat* seat
    cdef int i
    for i in range(table.seat_count):
        seat = &table.seats[i]
        if seat.wake <= now:
            seat.late += lateness(seat, now)
            send_round(table, seat, now)
        if least < 0 or seat.wake < least:
            least = seat.wake
    return -1 if least < 0 else <int>min((least - now + 999999) // 1000000, 1000000)


cdef int64_t look_what_runs(Table* table, int64_t now) noexcept nogil:
    """Report what has run for `LONG`, once; returns when to look although no beat is due, or -1."""
    cdef uint64_t one = 1
    cdef bint runs = table.busy is not NULL and table.busy[0] and table.began[0] != table.told
    if runs and now - table.began[0] >= LONG:
        table.told = table.began[0]
        write(table.long_wakeup, &one, 8)
        runs = False
    if table.look_at and table.look_at <= now:
        table.look_at = table.began[0] + LONG if runs else 0
    return table.look_at if table.look_at else -1


cdef void send_round(Table* table, Seat* seat, int64_t now) noexcept nogil:
    """Beat to all, or once more to those whose sockets were full."""
    cdef bint all = seat.due <= now
    cdef bint blocked = False
    cdef Contact* contact
    cdef int i
    if all:
        seat.due += seat.period - <int64_t>(roll(table) % <uint64_t>(seat.period // 4 + 1))
        if seat.due <= now:             # what was missed in a pause is not made up for
            seat.due = now + seat.period
        seat.tries = TRIES
    for i in range(seat.count):
        contact = &seat.contacts[i]
        if contact.length and not contact.cut and (all or contact.blocked):
            contact.blocked = not send_beat(table, seat, contact, now)
            blocked |= contact.blocked
    seat.wake = seat.due
    if blocked and seat.tries:
        seat.tries -= 1
        seat.wake = min(seat.due, now + seat.period // 8)


cdef uint64_t roll(Table* table) noexcept nogil:
    """A random number (xorshift)."""
    table.dice ^= table.dice << 13
    table.dice ^= table.dice >> 7
    table.dice ^= table.dice << 17
    return table.dice


cdef bint send_beat(Table* table, Seat* seat, Contact* contact, int64_t now) noexcept nogil:
    """Beat to one; False where its socket is full."""
    cdef unsigned char beat[BEAT_SIZE]
    cdef uint64_t lease = seat.lease
    cdef int i
    if contact.unleased or not contact.known or now - contact.known > seat.window:
        lease = 0
    for i in range(table.fd_count):
        if table.families[i] == contact.address.ss_family:
            if lease:
                contact.granted = now
            write_beat(beat, BEAT, seat, contact.incarnation, now, contact.latest, lease)
            return send(table, table.fds[i], beat, &contact.address, contact.length)
    return True


cdef void write_beat(unsigned char* beat, unsigned char kind, Seat* seat, uint64_t target,
                     int64_t now, uint64_t echo, uint64_t lease) noexcept nogil:
    store32(beat, MAGIC)
    beat[4] = VERSION
    beat[5] = kind
    beat[6] = beat[7] = 0
    store64(beat + 8, seat.group)
    store64(beat + 16, seat.incarnation)
    store64(beat + 24, target)
    store64(beat + 32, <uint64_t>now)
    store64(beat + 40, echo)
    store64(beat + 48, lease)


cdef bint send(Table* table, int fd, const unsigned char* beat, sockaddr_storage* target,
               socklen_t length) noexcept nogil:
    """Send without waiting; False where the socket is full. Other errors are silence."""
    if sendto(fd, beat, BEAT_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL, <sockaddr*>target, length) >= 0:
        table.counts[SENT] += 1
        return True
    table.counts[UNSENT] += 1
    return errno != EAGAIN and errno != ENOBUFS


cdef void receive(Table* table, int fd) noexcept nogil:
    """Take the datagrams that are there, within a bound."""
    cdef unsigned char beat[BEAT_SIZE + 1]
    cdef sockaddr_storage source
    cdef socklen_t length
    cdef ssize_t size
    cdef int i
    for i in range(TAKEN_AT_ONCE):
        length = sizeof(source)
        size = recvfrom(fd, beat, BEAT_SIZE + 1, MSG_DONTWAIT, <sockaddr*>&source, &length)
        if size < 0:
            if errno == EINTR:
                continue
            return
        pthread_mutex_lock(&table.mutex)
        table.counts[take(table, fd, beat, size, &source, length)] += 1
        pthread_mutex_unlock(&table.mutex)


cdef int take(Table* table, int fd, unsigned char* beat, ssize_t size, sockaddr_storage* source,
              socklen_t length) noexcept nogil:
    """Believe what can be believed of one datagram; returns what it counts as."""
    cdef int64_t now = monotonic()
    cdef uint64_t sent, echo
    cdef Seat* seat
    cdef Contact* contact
    if size != BEAT_SIZE:
        return WRONG_SIZE
    if (load32(beat) != MAGIC or beat[4] != VERSION or (beat[5] != BEAT and beat[5] != ANSWER)
            or beat[6] or beat[7]):
        return WRONG_HEADER
    seat = seat_of(table, load64(beat + 24))
    if seat is NULL or seat.group != load64(beat + 8):
        return NOT_FOR_US
    sent, echo = load64(beat + 32), load64(beat + 40)
    if echo > <uint64_t>now:
        return STALE                    # of a beat that was never sent
    contact = contact_of(seat, load64(beat + 16))
    if contact is NULL:
        if beat[5] == ANSWER:
            return NOT_FOR_US
        write_beat(beat, ANSWER, seat, load64(beat + 16), now, sent, 0)
        send(table, fd, beat, source, length)
        return ANSWERED
    if contact.cut:
        return NOT_FOR_US
    if sent <= contact.latest:
        return STALE
    contact.latest = sent
    if echo:
        contact.known = max(contact.known, min(now, <int64_t>echo + seat.period))
        contact.late = seat.late
        if load64(beat + 48):
            contact.lease, contact.leased = load64(beat + 48), <int64_t>echo
    return TAKEN
