"""The thread of the heartbeats: it sends the beats that are due and takes those that come.

It needs no interpreter lock, and no function here touches a Python object; the table that it works
on is in `heartbeat_table.pyx`, what a beat says in `heartbeat.pyx`.
"""

from libc.errno cimport EAGAIN, EINTR, ENOBUFS, errno
from libc.stdint cimport int64_t, uint64_t

from orcalike.transport.drivers.driver cimport monotonic
from orcalike.transport.drivers.heartbeat_table cimport (
    ANSWERED, LONG, NOT_FOR_US, REASONS, SENT, SOCKETS_MAX, STALE, TAKEN, UNSENT, WRONG_HEADER,
    WRONG_SIZE, WRONG_TAG, Contact, EndpointSlot, Table, Watch, contact_of, lateness, pthread_mutex_t, slot_of,
    sockaddr_storage, socklen_t,
)
from orcalike.transport.drivers.siphash cimport SIP_TAG_SIZE, siphash
from orcalike.transport.wire.bytes cimport load32, load64, store32, store64

cdef extern from "<pthread.h>" nogil:
    int pthread_mutex_lock(pthread_mutex_t* mutex)
    int pthread_mutex_unlock(pthread_mutex_t* mutex)

cdef extern from "<sys/socket.h>" nogil:
    struct sockaddr:
        unsigned short sa_family
    ssize_t recvfrom(int fd, void* buffer, size_t size, int flags, sockaddr* source,
                     socklen_t* length)
    ssize_t sendto(int fd, const void* buffer, size_t size, int flags, const sockaddr* target,
                   socklen_t length)
    enum:
        AF_UNIX
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

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int fd, void* buffer, size_t size)
    ssize_t write(int fd, const void* buffer, size_t size)

cdef enum:
    MAGIC = 0x62636F4F          # "Oocb" on the wire
    VERSION = 2
    BEAT = 1                    # kinds
    ANSWER = 2
    BEAT_SIZE = 56
    BEAT_MAX = BEAT_SIZE + SIP_TAG_SIZE
    TAKEN_AT_ONCE = 64          # datagrams, before the thread looks at what is due
    TRIES = 3                   # to reach a full socket again, an eighth of the period apart


cdef void wake_thread(Table* table) noexcept nogil:
    """Have the thread look at the table now."""
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
    cdef EndpointSlot* slot
    cdef int i
    for i in range(table.slot_count):
        slot = &table.slots[i]
        if slot.wake <= now:
            slot.late += lateness(slot, now)
            send_round(table, slot, now)
        if least < 0 or slot.wake < least:
            least = slot.wake
    return -1 if least < 0 else <int>min((least - now + 999999) // 1000000, 1000000)


cdef int64_t look_what_runs(Table* table, int64_t now) noexcept nogil:
    """Report what has run for `LONG`, once; returns when to look although no beat is due, or -1."""
    cdef uint64_t one = 1
    cdef int64_t began, next = 0
    cdef Watch* watch
    cdef int i
    for i in range(table.watch_count):
        watch = &table.watches[i]
        began = watch.began[0]
        if not watch.busy[0] or began == watch.reported:
            continue
        if now - began >= LONG:
            watch.reported = began
            write(watch.wakeup, &one, 8)
        elif not next or began + LONG < next:
            next = began + LONG
    if table.look_at and table.look_at <= now:
        table.look_at = next
    return table.look_at if table.look_at else -1


cdef void send_round(Table* table, EndpointSlot* slot, int64_t now) noexcept nogil:
    """Send heartbeats to all peers, or once more to those whose sockets were full."""
    cdef bint all = slot.due <= now
    cdef bint blocked = False
    cdef Contact* contact
    cdef int i
    if all:
        slot.due += slot.period - <int64_t>(draw(table) % <uint64_t>(slot.period // 4 + 1))
        if slot.due <= now:             # what was missed in a pause is not made up for
            slot.due = now + slot.period
        slot.tries = TRIES
    for i in range(slot.count):
        contact = &slot.contacts[i]
        if contact.length and not contact.cut and (all or contact.blocked):
            contact.blocked = not send_beat(table, slot, contact, now)
            blocked |= contact.blocked
    slot.wake = slot.due
    if blocked and slot.tries:
        slot.tries -= 1
        slot.wake = min(slot.due, now + slot.period // 8)


cdef uint64_t draw(Table* table) noexcept nogil:
    """A random number (xorshift)."""
    table.rng ^= table.rng << 13
    table.rng ^= table.rng >> 7
    table.rng ^= table.rng << 17
    return table.rng


cdef bint send_beat(Table* table, EndpointSlot* slot, Contact* contact, int64_t now) noexcept nogil:
    """Send a heartbeat to one peer; False if its socket is full."""
    cdef unsigned char beat[BEAT_MAX]
    cdef uint64_t lease = slot.lease
    cdef int i
    if contact.unleased or not contact.known or now - contact.known > slot.window:
        lease = 0
    for i in range(table.fd_count):
        if table.families[i] == contact.address.ss_family:
            if lease:
                contact.granted = now
            write_beat(beat, BEAT, slot, contact.incarnation, now, contact.latest, lease)
            return send(table, table.fds[i], beat, &contact.address, contact.length)
    return True


cdef void write_beat(unsigned char* beat, unsigned char kind, EndpointSlot* slot, uint64_t target,
                     int64_t now, uint64_t echo, uint64_t lease) noexcept nogil:
    store32(beat, MAGIC)
    beat[4] = VERSION
    beat[5] = kind
    beat[6] = beat[7] = 0
    store64(beat + 8, slot.group)
    store64(beat + 16, slot.incarnation)
    store64(beat + 24, target)
    store64(beat + 32, <uint64_t>now)
    store64(beat + 40, echo)
    store64(beat + 48, lease)


cdef bint send(Table* table, int fd, unsigned char* beat, sockaddr_storage* target,
               socklen_t length) noexcept nogil:
    """Send without waiting; False where the socket is full. Other errors are silence."""
    cdef Py_ssize_t size = BEAT_SIZE
    if is_tagged(table, target):
        siphash(table.keys[0], beat, BEAT_SIZE, beat + BEAT_SIZE)
        size = BEAT_MAX
    if sendto(fd, beat, size, MSG_DONTWAIT | MSG_NOSIGNAL, <sockaddr*>target, length) >= 0:
        table.counts[SENT] += 1
        return True
    table.counts[UNSENT] += 1
    return errno != EAGAIN and errno != ENOBUFS


cdef bint is_tagged(Table* table, sockaddr_storage* other) noexcept nogil:
    """Whether the beats of an address, and those for it, have a tag: the kernel guards Unix sockets."""
    return table.key_count and other.ss_family != AF_UNIX


cdef bint has_tag(Table* table, unsigned char* beat) noexcept nogil:
    """Whether a process with one of the keys has made a beat; how long it takes says nothing (S15)."""
    cdef unsigned char tag[SIP_TAG_SIZE]
    cdef unsigned char differs
    cdef int i, j
    for i in range(table.key_count):
        siphash(table.keys[i], beat, BEAT_SIZE, tag)
        differs = 0
        for j in range(SIP_TAG_SIZE):
            differs |= tag[j] ^ beat[BEAT_SIZE + j]
        if not differs:
            return True
    return False


cdef void receive(Table* table, int fd) noexcept nogil:
    """Take the datagrams that are there, within a bound."""
    cdef unsigned char beat[BEAT_MAX + 1]
    cdef sockaddr_storage source
    cdef socklen_t length
    cdef ssize_t size
    cdef int i
    for i in range(TAKEN_AT_ONCE):
        length = sizeof(source)
        source.ss_family = AF_UNIX      # of one that has no address
        size = recvfrom(fd, beat, BEAT_MAX + 1, MSG_DONTWAIT, <sockaddr*>&source, &length)
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
    cdef EndpointSlot* slot
    cdef Contact* contact
    if size != (BEAT_MAX if is_tagged(table, source) else BEAT_SIZE):
        return WRONG_SIZE
    if size == BEAT_MAX and not has_tag(table, beat):
        return WRONG_TAG
    if (load32(beat) != MAGIC or beat[4] != VERSION or (beat[5] != BEAT and beat[5] != ANSWER)
            or beat[6] or beat[7]):
        return WRONG_HEADER
    slot = slot_of(table, load64(beat + 24))
    if slot is NULL or slot.group != load64(beat + 8):
        return NOT_FOR_US
    sent, echo = load64(beat + 32), load64(beat + 40)
    if echo > <uint64_t>now:
        return STALE                    # of a beat that was never sent
    contact = contact_of(slot, load64(beat + 16))
    if contact is NULL:
        if beat[5] == ANSWER:
            return NOT_FOR_US
        write_beat(beat, ANSWER, slot, load64(beat + 16), now, sent, 0)
        send(table, fd, beat, source, length)
        return ANSWERED
    if contact.cut:
        return NOT_FOR_US
    if sent <= contact.latest:
        return STALE
    contact.latest = sent
    if echo:
        contact.known = max(contact.known, min(now, <int64_t>echo + slot.period))
        contact.late = slot.late
        if load64(beat + 48):
            contact.lease, contact.leased = load64(beat + 48), <int64_t>echo
    return TAKEN
